//! Draws decisions, and changes them.

use crate::codegen::accel::space::{Decisions, Knob, Space};
use rand::Rng;
use rand::rngs::StdRng;

/// Maximum number of values between a decision and its changed value, unless the new value is drawn.
const STEP: usize = 3;

/// Draws a value for every decision of one of the forms; `None` if the space is empty.
pub fn random(space: &Space, rng: &mut StdRng) -> Option<Decisions> {
    let forms: Vec<&Vec<Knob>> =
        space.forms.iter().filter(|knobs| !knobs.iter().any(|k| k.values.is_empty())).collect();
    if forms.is_empty() {
        return None;
    }
    let knobs = forms[rng.random_range(0..forms.len())];
    let one = |k: &Knob, rng: &mut StdRng| k.values[rng.random_range(0..k.values.len())].clone();
    Some(Decisions(knobs.iter().map(|k| (k.name.clone(), one(k, rng))).collect()))
}

/// Changes one or two decisions, mostly to a value nearby; `None` if the space has no such decisions.
pub fn mutate(space: &Space, from: &Decisions, rng: &mut StdRng) -> Option<Decisions> {
    let at = |k: &Knob| k.values.iter().position(|value| from.0.get(&k.name) == Some(value));
    let is_form = |knobs: &&Vec<Knob>| knobs.len() == from.0.len() && knobs.iter().all(|k| at(k).is_some());
    let form = space.forms.iter().find(is_form)?;
    let open: Vec<&Knob> = form.iter().filter(|k| k.values.len() > 1).collect();
    if open.is_empty() {
        return None;
    }
    let mut changed = from.clone();
    for _ in 0..rng.random_range(1..=2) {
        let knob = open[rng.random_range(0..open.len())];
        let last = knob.values.len() - 1;
        let near = at(knob).filter(|_| rng.random_bool(0.7)).map(|at| {
            let step = rng.random_range(1..=STEP);
            if rng.random() { at.saturating_sub(step) } else { (at + step).min(last) }
        });
        let to = near.unwrap_or_else(|| rng.random_range(0..=last));
        changed.0.insert(knob.name.clone(), knob.values[to].clone());
    }
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn drawn_and_changed_decisions_are_in_the_space() {
        let form = |word: &str| Knob::words("form", &[word]);
        let forms = vec![
            vec![form("a"), Knob::size("rows", 9)],
            vec![form("b"), Knob::size("rows", 5), Knob::size("columns", 1)],
        ];
        let space = Space { forms };
        let inside = |d: &Decisions| {
            space
                .forms
                .iter()
                .any(|knobs| knobs.len() == d.0.len() && knobs.iter().all(|k| k.values.contains(&d.0[&k.name])))
        };
        let mut rng = StdRng::seed_from_u64(1);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..500 {
            let drawn = random(&space, &mut rng).unwrap();
            let changed = mutate(&space, &drawn, &mut rng).unwrap();
            assert!(inside(&drawn) && inside(&changed), "{drawn}; {changed}");
            assert_eq!(drawn.0["form"], changed.0["form"]);
            seen.extend([drawn, changed]);
        }
        assert_eq!(seen.len() as u64, space.combinations());
        let other = Decisions::new([("form", "c".into())]);
        assert!(mutate(&space, &other, &mut rng).is_none());
        assert!(random(&Space::default(), &mut rng).is_none());
        assert!(random(&Space::of(vec![Knob { name: "x".into(), values: Vec::new() }]), &mut rng).is_none());
    }
}
