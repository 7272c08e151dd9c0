//! One schedule for many sizes.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{compare, preset};
use crate::mapping::{Mapping, SizedError, SizedMapping};
use crate::schedule::file::parse_with;
use crate::te::{Name, text::Names};
use crate::testing::data;

const CONV: &str = include_str!("../../../../examples/schedules/conv_any_size.te");

fn sizes(values: [i64; 4]) -> Vec<(Name, i64)> {
    ["height", "width", "blocks", "rows"].into_iter().map(Name::from).zip(values).collect()
}

/// Tiles may be larger than the image, or leave a remainder of any number of rows.
#[test]
fn programs_are_right_at_every_size() {
    let config = preset("1x16x16");
    let mapping = SizedMapping::new(&config, CONV).unwrap();
    assert_eq!(mapping.sizes(), sizes([28, 28, 4, 4]));
    let mut random = StdRng::seed_from_u64(71);
    let mut draw = |most: i64| random.random_range(1..=most);
    let drawn = (0..40).map(|_| [draw(17), draw(17), draw(2), draw(5)]).collect::<Vec<_>>();
    for values in [[1, 1, 1, 1], [1, 5, 1, 4], [5, 1, 2, 4]].into_iter().chain(drawn) {
        let sizes = sizes(values);
        let file = parse_with(CONV, &Names { sizes: &sizes, ..Names::default() }).unwrap();
        let mut steps = Mapping::new(&config, &file.program).unwrap();
        for (line, step) in file.steps {
            steps.apply(step).unwrap_or_else(|e| panic!("{values:?}, line {line}: {e}"));
        }
        compare(&config, &steps, &file.program, &data(&file.program));
        let built = mapping.at(&sizes).unwrap_or_else(|e| panic!("{values:?}: {e}"));
        assert_eq!(built.program, steps.lower().unwrap().program, "{values:?}");
        let reversed: Vec<_> = sizes.into_iter().rev().collect();
        assert!(std::sync::Arc::ptr_eq(&built, &mapping.at(&reversed).unwrap()), "{values:?} is built twice");
    }
}

#[test]
fn impossible_sizes_are_refused() {
    let mapping = SizedMapping::new(&preset("1x16x16"), CONV).unwrap();
    let refused = |values| mapping.at(&sizes(values)).unwrap_err();
    let wide = refused([28, 200, 4, 4]);
    assert!(matches!(wide, SizedError::Lower(_)) && wide.to_string().contains("inp has 2048 entries"), "{wide}");
    let none = refused([28, 28, 4, 0]);
    assert!(matches!(none, SizedError::Step { line: 22, .. }), "{none}");
    let empty = refused([0, 28, 4, 4]);
    assert!(matches!(empty, SizedError::File(_)), "{empty}");
    let unknown = mapping.at(&[("depth".into(), 3)]).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no size depth; the file declares height, width, blocks, rows");
}
