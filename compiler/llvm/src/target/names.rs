//! Processors by name: `aarch64-linux-gnu,cpu=cortex-a76,+dotprod`.
//!
//! Code uses only the architecture's base, the features named, and those of a named processor, even if LLVM knows that
//! the processor has more. An artifact therefore needs exactly what it states.

use super::{Architecture, Processor};
use crate::EmitError;

/// A feature, and the features that it implies.
type Feature = (&'static str, &'static [&'static str]);

/// The names known for an architecture.
struct Names {
    /// Its names on the command line. The first one is used in lists.
    triples: &'static [&'static str],
    triple: &'static str,
    base: &'static str,
    base_features: &'static [&'static str],
    /// Features that LLVM would take for granted, but code has only if they are named.
    unless_named: &'static [&'static str],
    features: &'static [Feature],
    /// Processors, each with its features.
    cpus: &'static [Feature],
}

const X86_V3: &[&str] = &["avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"];
const X86_V4: &[&str] = &["bmi", "bmi2", "lzcnt", "movbe", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];
const X86_VNNI: &[&str] =
    &["bmi", "bmi2", "lzcnt", "movbe", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512vnni"];

static KNOWN: [Names; 5] = [
    Names {
        triples: &["x86_64-linux-gnu", "x86_64-unknown-linux-gnu", "x86_64"],
        triple: "x86_64-unknown-linux-gnu",
        base: "x86-64",
        base_features: &["sse2"],
        unless_named: &[],
        features: &[
            ("sse3", &[]),
            ("ssse3", &["sse3"]),
            ("sse4.1", &["ssse3"]),
            ("sse4.2", &["sse4.1"]),
            ("popcnt", &[]),
            ("avx", &["sse4.2"]),
            ("avx2", &["avx"]),
            ("fma", &["avx"]),
            ("f16c", &["avx"]),
            ("bmi", &[]),
            ("bmi2", &[]),
            ("lzcnt", &[]),
            ("movbe", &[]),
            ("avx512f", &["avx2", "fma", "f16c"]),
            ("avx512bw", &["avx512f"]),
            ("avx512cd", &["avx512f"]),
            ("avx512dq", &["avx512f"]),
            ("avx512vl", &["avx512f"]),
            ("avx512vnni", &["avx512f"]),
        ],
        cpus: &[
            ("x86-64", &[]),
            ("x86-64-v2", &["sse4.2", "popcnt"]),
            ("x86-64-v3", X86_V3),
            ("x86-64-v4", X86_V4),
            ("haswell", X86_V3),
            ("skylake", X86_V3),
            ("znver2", X86_V3),
            ("znver3", X86_V3),
            ("skylake-avx512", X86_V4),
            ("icelake-server", X86_VNNI),
            ("sapphirerapids", X86_VNNI),
            ("znver4", X86_VNNI),
        ],
    },
    Names {
        triples: &["aarch64-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64"],
        triple: "aarch64-unknown-linux-gnu",
        base: "generic",
        base_features: &["neon"],
        unless_named: &[],
        features: &[("dotprod", &[])],
        cpus: &[
            ("generic", &[]),
            ("cortex-a53", &[]),
            ("cortex-a55", &["dotprod"]),
            ("cortex-a57", &[]),
            ("cortex-a72", &[]),
            ("cortex-a73", &[]),
            ("cortex-a76", &["dotprod"]),
            ("cortex-a78", &["dotprod"]),
            ("cortex-x1", &["dotprod"]),
            ("neoverse-n1", &["dotprod"]),
            ("neoverse-n2", &["dotprod"]),
            ("neoverse-v1", &["dotprod"]),
        ],
    },
    Names {
        triples: &["armv7-linux-gnueabihf", "armv7-unknown-linux-gnueabihf", "armv7"],
        triple: "armv7-unknown-linux-gnueabihf",
        base: "generic",
        base_features: &["vfp3"],
        unless_named: &["neon"],
        features: &[("neon", &[])],
        cpus: &[
            ("generic", &[]),
            ("cortex-a7", &[]),
            ("cortex-a8", &[]),
            ("cortex-a9", &[]),
            ("cortex-a15", &[]),
            ("cortex-a17", &[]),
        ],
    },
    Names {
        triples: &["riscv64-linux-gnu", "riscv64-unknown-linux-gnu", "riscv64"],
        triple: "riscv64-unknown-linux-gnu",
        base: "generic-rv64",
        base_features: &["m", "a", "f", "d", "c"],
        unless_named: &[],
        features: &[
            ("v", &[]),
            ("zvl256b", &["v"]),
            ("zvl512b", &["zvl256b"]),
            ("zba", &[]),
            ("zbb", &[]),
            ("zbs", &[]),
        ],
        cpus: &[
            ("generic-rv64", &[]),
            ("sifive-u74", &[]),
            ("sifive-x280", &["zvl512b", "zba", "zbb"]),
            ("spacemit-x60", &["zvl256b", "zba", "zbb", "zbs"]),
        ],
    },
    Names {
        triples: &["wasm32", "wasm32-unknown-unknown"],
        triple: "wasm32-unknown-unknown",
        base: "generic",
        // What every engine has that has SIMD, and those of four years before that.
        base_features: &["bulk-memory", "mutable-globals", "nontrapping-fptoint", "sign-ext"],
        unless_named: &[],
        features: &[("simd128", &[])],
        cpus: &[("generic", &[])],
    },
];

/// Returns the names of the targets.
pub fn triples() -> Vec<&'static str> {
    KNOWN.iter().map(|names| names.triples[0]).collect()
}

/// A target as lists show it.
#[derive(Debug, Clone)]
pub struct Known {
    /// Its name for [`Processor::named`].
    pub name: &'static str,
    /// Features that all of its code uses.
    pub base: Vec<&'static str>,
    /// Further features.
    pub features: Vec<&'static str>,
    /// Processors.
    pub processors: Vec<&'static str>,
}

/// All targets.
pub fn known() -> impl Iterator<Item = Known> {
    let list = |features: &[Feature]| features.iter().map(|(name, _)| *name).collect();
    KNOWN.iter().map(move |names| Known {
        name: names.triples[0],
        base: names.base_features.to_vec(),
        features: list(names.features),
        processors: list(names.cpus),
    })
}

impl Names {
    /// Adds a feature and all features that it implies. Returns `false` if it is unknown.
    fn add(&self, feature: &str, to: &mut Vec<&'static str>) -> bool {
        if self.base_features.contains(&feature) {
            return true;
        }
        let Some((name, more)) = self.features.iter().find(|(name, _)| *name == feature) else { return false };
        more.iter().for_each(|feature| _ = self.add(feature, to));
        if !to.contains(name) {
            to.push(name);
        }
        true
    }
}

impl Processor {
    /// Returns a processor by the name of its target, optionally followed by `cpu=NAME` and features as `+NAME`,
    /// separated by commas.
    ///
    /// # Errors
    /// Names what is unknown and lists what is known.
    pub fn named(text: &str) -> Result<Processor, EmitError> {
        let list = |names: &[Feature]| names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let mut words = text.split(',').map(str::trim);
        let triple = words.next().unwrap_or_default();
        let Some(names) = KNOWN.iter().find(|names| names.triples.contains(&triple)) else {
            let there = triples().join(", ");
            return Err(EmitError::Program(format!("CPU target `{triple}` is not supported; use one of {there}")));
        };
        let (mut features, mut tuned_for) = (names.base_features.to_vec(), None);
        for word in words {
            let known = match (word.strip_prefix('+'), word.strip_prefix("cpu=")) {
                (Some(feature), _) => names.add(feature, &mut features),
                (None, Some(cpu)) => match names.cpus.iter().find(|(name, _)| *name == cpu) {
                    Some((name, own)) => {
                        tuned_for = Some(name.to_string()).filter(|name| name != names.base);
                        own.iter().for_each(|feature| _ = names.add(feature, &mut features));
                        true
                    }
                    None => {
                        let (there, target) = (list(names.cpus), names.triples[0]);
                        let text = format!("target {target} has no processor `{cpu}`; use one of {there}");
                        return Err(EmitError::Program(text));
                    }
                },
                (None, None) => false,
            };
            if !known {
                let (target, there) = (names.triples[0], list(names.features));
                return Err(EmitError::Program(format!(
                    "target {target} has no `{word}`; use cpu=NAME, or +FEATURE with one of {there}"
                )));
            }
        }
        let without = names.unless_named.iter().filter(|name| !features.contains(name)).map(|name| format!("-{name}"));
        let features = features.iter().map(|feature| format!("+{feature}")).chain(without);
        let features = features.collect::<Vec<_>>().join(",");
        Ok(Processor { triple: names.triple.into(), cpu: names.base.into(), features, tuned_for })
    }

    /// Returns the architecture's first name.
    pub fn target_name(&self) -> &'static str {
        match self.architecture() {
            Architecture::X86 => KNOWN[0].triples[0],
            Architecture::Arm => KNOWN[1].triples[0],
            Architecture::Arm32 => KNOWN[2].triples[0],
            Architecture::RiscV => KNOWN[3].triples[0],
            Architecture::Wasm => KNOWN[4].triples[0],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_what_llvm_calls_them() {
        let features = |text: &str| Processor::named(text).unwrap().features;
        assert_eq!(features("aarch64-linux-gnu"), "+neon");
        assert_eq!(features("aarch64,+dotprod,+dotprod"), "+neon,+dotprod");
        assert_eq!(features("armv7-linux-gnueabihf"), "+vfp3,-neon");
        assert_eq!(features("armv7,cpu=cortex-a9"), "+vfp3,-neon");
        assert_eq!(features("armv7,cpu=cortex-a9,+neon"), "+vfp3,+neon");
        assert_eq!(features("riscv64-linux-gnu,+v"), "+m,+a,+f,+d,+c,+v");
        assert_eq!(features("x86_64-linux-gnu,+avx2"), "+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2");
        let named = Processor::named("aarch64-linux-gnu,cpu=cortex-a76").unwrap();
        assert!(named.has("dotprod") && named.cpu == "generic" && named.tuned_for.as_deref() == Some("cortex-a76"));
        assert!(Processor::named("x86_64,cpu=znver4").unwrap().has("avx512f"));
    }

    #[test]
    fn what_is_not_known_is_told_with_what_is() {
        for (text, want) in [
            ("sparc", "use one of x86_64-linux-gnu, aarch64-linux-gnu, armv7-linux-gnueabihf, riscv64-linux-gnu"),
            ("aarch64-linux-gnu,+avx2", "no `+avx2`; use cpu=NAME, or +FEATURE with one of dotprod"),
            ("riscv64-linux-gnu,v", "no `v`"),
            ("aarch64-linux-gnu,cpu=z80", "no processor `z80`; use one of generic, cortex-a53"),
        ] {
            let error = Processor::named(text).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }

    #[test]
    fn every_name_makes_code() {
        for names in &KNOWN {
            let text = |word: String| format!("{},{word}", names.triples[0]);
            let features = names.features.iter().map(|(name, _)| text(format!("+{name}")));
            for text in features.chain(names.cpus.iter().map(|(name, _)| text(format!("cpu={name}")))) {
                let object = Processor::named(&text).unwrap().data_object("x", &[1, 2, 3]).unwrap();
                let magic: &[u8] = if text.starts_with("wasm32") { b"\0asm" } else { b"\x7fELF" };
                assert_eq!(&object[..4], magic, "{text}");
            }
        }
    }
}
