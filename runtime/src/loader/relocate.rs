//! Fills an image with its sections and applies the relocations.

use std::collections::HashMap;

use super::layout::{Placed, Plan, Reloc, Target};
use super::machine::{Refused, Site};
use super::{ImportTable, LoadError};

/// Writes sections, jumps to imports and pointers into the image that will be mapped at `base`.
pub fn fill(plan: &Plan<'_>, image: &mut [u8], base: u64, imports: &ImportTable) -> Result<(), LoadError> {
    for s in &plan.sections {
        put(image, s.offset, s.data)?;
    }
    for (symbol, &at) in &plan.stubs {
        let stub = plan.machine.jump(address(plan, *symbol, base, imports)?);
        put(image, at, &stub)?;
    }
    for (symbol, &at) in &plan.got {
        put(image, at, &address(plan, *symbol, base, imports)?.to_le_bytes())?;
    }
    let all = || plan.sections.iter().flat_map(|s| s.relocations.iter().map(move |r| (s, r)));
    // These come before the others, which refer to their places.
    let mut highs = HashMap::new();
    for (s, r) in all() {
        if let Some(far) =
            at_site(plan, (s, r), image, base, imports, &|_| None, &mut |site| plan.machine.distance(site))?
        {
            highs.insert(base + s.offset as u64 + r.offset, far);
        }
    }
    let high = |label: u64| highs.get(&label).copied();
    for place in all() {
        at_site(plan, place, image, base, imports, &high, &mut |site| plan.machine.relocate(site))?;
    }
    Ok(())
}

fn put(image: &mut [u8], at: usize, bytes: &[u8]) -> Result<(), LoadError> {
    match at.checked_add(bytes.len()).and_then(|end| image.get_mut(at..end)) {
        Some(place) => {
            place.copy_from_slice(bytes);
            Ok(())
        }
        None => Err(LoadError::Format("an address outside the image".into())),
    }
}

/// Address of a symbol.
fn address(plan: &Plan<'_>, symbol: usize, base: u64, imports: &ImportTable) -> Result<u64, LoadError> {
    match plan.symbols.get(&symbol) {
        Some(Target::Here(offset)) => Ok(base + *offset as u64),
        Some(Target::Import(name)) => imports.address(name).ok_or_else(|| LoadError::Unresolved(name.clone())),
        None => Err(LoadError::Format(format!("symbol {symbol} is missing"))),
    }
}

/// Calls `act` on the place of a relocation.
fn at_site<T>(
    plan: &Plan<'_>,
    (section, r): (&Placed<'_>, &Reloc),
    image: &mut [u8],
    base: u64,
    imports: &ImportTable,
    high: &dyn Fn(u64) -> Option<i64>,
    act: &mut dyn FnMut(&mut Site<'_>) -> Result<T, Refused>,
) -> Result<T, LoadError> {
    let fail = |reason: &str| LoadError::Relocation {
        section: section.name.clone(),
        offset: r.offset,
        kind: r.kind.0,
        reason: reason.into(),
    };
    let at = usize::try_from(r.offset).ok().and_then(|offset| section.offset.checked_add(offset));
    let (Some(at), end) = (at, section.offset + section.size) else {
        return Err(fail("it is outside the section"));
    };
    let bytes = image.get_mut(at..end).ok_or_else(|| fail("it is outside the section"))?;
    let place = |offset: &usize| base + *offset as u64;
    let mut site = Site {
        kind: r.kind,
        addend: r.addend,
        here: place(&at),
        symbol: &|| address(plan, r.symbol, base, imports),
        jump: plan.stubs.get(&r.symbol).map(place),
        pointer: plan.got.get(&r.symbol).map(place),
        table: place(&plan.table),
        high,
        bytes,
    };
    act(&mut site).map_err(|refused| match refused {
        Refused::Because(reason) => fail(reason),
        Refused::Symbol(error) => error,
    })
}
