// A field of an instruction's body: its bits, or its default where the configuration leaves it out; a concatenation, so
// that its width is its own.
`define TW_FIELD(insn, field, body) \
  {tw_cfg_pkg::insn``_``field``_has ? body[tw_cfg_pkg::insn``_``field``_lsb +: tw_cfg_pkg::insn``_``field``_w] \
                                    : tw_cfg_pkg::insn``_``field``_default}
