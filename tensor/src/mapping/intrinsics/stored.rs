//! Values that the vector unit computes and stores.

use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::{TABLE_BYTES, VecDst, VecSrc};

use super::entry::Entry;
use super::text::intrinsic;
use crate::te::{DType, Expr, Name};
use crate::tir::{Buffer, Function, Intrinsic, Scope};

/// A value that the vector unit shall compute and store.
pub struct StoredValue<'t> {
    pub config: &'t HwConfig,
    pub f: &'t Function,
    /// Where it is stored.
    pub dst: &'t Buffer,
    /// The element that is stored.
    pub indices: &'t [Expr],
    /// The value.
    pub value: &'t Expr,
}

/// An operand of an operation.
#[derive(Clone)]
pub struct Operand {
    /// Its name in the intrinsic: `dst` if it is the destination.
    pub name: String,
    /// What the instruction calls it.
    pub source: VecSrc,
    /// Its memory.
    pub scope: Scope,
    /// Its element type.
    pub dtype: DType,
}

impl Operand {
    /// Returns its value as text, widened to 32 bits.
    pub fn wide(&self, entry: Entry) -> String {
        let value = self.narrow(entry);
        if self.dtype == DType::I32 { value } else { format!("i32({value})") }
    }

    /// Returns its value as text, in its own type.
    pub fn narrow(&self, entry: Entry) -> String {
        format!("{}{}", self.name, entry.at("o"))
    }
}

impl StoredValue<'_> {
    /// Returns the destination.
    ///
    /// # Errors
    /// The vector unit cannot write there.
    pub fn dst(&self) -> Result<VecDst, String> {
        match self.dst.scope {
            Scope::Acc => Ok(VecDst::Acc),
            Scope::Out => Ok(VecDst::Out),
            Scope::Inp if self.config.vector_reaches_inp() => Ok(VecDst::Inp),
            scope => Err(format!(
                "the vector unit cannot write {}, which is in {}; it writes acc, out, and inp if block_in equals block_out",
                self.dst.name,
                scope.name()
            )),
        }
    }

    /// Returns the places that the value loads, each once. The destination has the name `dst`.
    ///
    /// # Errors
    /// The vector unit cannot read one of them.
    pub fn operands(&self) -> Result<Vec<Operand>, String> {
        self.operands_of(self.value).into_iter().collect()
    }

    /// Returns the places that a part of the value loads, each once, or why the vector unit cannot read one.
    pub fn operands_of(&self, value: &Expr) -> Vec<Result<Operand, String>> {
        let mut seen: Vec<(Name, Vec<Expr>)> = Vec::new();
        value.visit(&mut |e| {
            if let Expr::Load { buffer, indices, .. } = e
                && !seen.iter().any(|s| s.0 == *buffer && s.1 == *indices)
            {
                seen.push((buffer.clone(), indices.clone()));
            }
        });
        let operand = |(i, (buffer, indices)): (usize, (Name, Vec<Expr>))| {
            let Some(b) = self.f.buffer(&buffer) else { return Err(format!("there is no buffer {buffer}")) };
            let source = match b.scope {
                Scope::Acc => VecSrc::Acc,
                Scope::Out => VecSrc::Out,
                Scope::Inp if self.config.vector_reaches_inp() => VecSrc::Inp,
                Scope::Param => VecSrc::Param,
                scope => {
                    return Err(format!(
                        "the vector unit cannot read {buffer}, which is in {}; it reads acc, out, and inp if block_in \
                         equals block_out",
                        scope.name()
                    ));
                }
            };
            let own = buffer == self.dst.name && indices == self.indices;
            let name = if own { "dst".into() } else { format!("x{i}") };
            Ok(Operand { name, source, scope: b.scope, dtype: b.dtype })
        };
        seen.into_iter().enumerate().map(operand).collect()
    }

    /// Returns the integer constants of the value, each once.
    pub fn constants(&self) -> Vec<i32> {
        let mut all = Vec::new();
        self.value.visit(&mut |e| {
            if let Expr::Int(v, DType::I32 | DType::I8) = e
                && let Ok(v) = i32::try_from(*v)
                && !all.contains(&v)
            {
                all.push(v);
            }
        });
        all
    }

    /// Returns an intrinsic that stores `value`.
    ///
    /// # Errors
    /// The value is not well formed.
    pub fn intrinsic(&self, name: &str, entry: Entry, inputs: &[&Operand], value: &str) -> Result<Intrinsic, String> {
        let dims = entry.dims(self.config.block_out);
        let params = inputs.iter().map(|x| format!("param {}: {}{dims} in {}", x.name, x.dtype, x.scope.name()));
        self.storing(name, entry, &params.collect::<Vec<_>>(), value)
    }

    /// Returns an intrinsic that stores an element of a table of 256 bytes.
    ///
    /// # Errors
    /// The value is not well formed.
    pub fn with_table(&self, entry: Entry, table: &Operand, x: &Operand, value: &str) -> Result<Intrinsic, String> {
        let dims = entry.dims(self.config.block_out);
        let params = [
            format!("param {}: {}[{TABLE_BYTES}] in {}", table.name, table.dtype, table.scope.name()),
            format!("param {}: {}{dims} in {}", x.name, x.dtype, x.scope.name()),
        ];
        self.storing("lut", entry, &params, value)
    }

    fn storing(&self, name: &str, entry: Entry, params: &[String], value: &str) -> Result<Intrinsic, String> {
        let bo = self.config.block_out;
        let body = format!("for o in {bo} {{ block lane {{ dst{} = {value} }} }}", entry.at("o"));
        let text = format!(
            "intrinsic {name} {{ {} param dst: {}{} in {} {} }}",
            params.join(" "),
            self.dst.dtype,
            entry.dims(bo),
            self.dst.scope.name(),
            entry.around(&body)
        );
        intrinsic(&text).map_err(|e| e.to_string())
    }
}
