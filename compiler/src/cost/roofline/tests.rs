use super::*;
use crate::graph::text::{Blobs, parse};

fn bound(config: &HwConfig, lines: &str) -> Roofline {
    let graph = parse(&format!("graph \"g\" {{\n{lines}\n}}\n"), &Blobs::new()).unwrap();
    let nodes = graph.nodes().map(|(id, _)| id).collect();
    roofline(&graph, &nodes, config).unwrap()
}

fn preset(name: &str) -> HwConfig {
    HwConfig::load(name).unwrap()
}

/// A convolution of 4 x 4 pixels with a window of 3 x 3 and padding.
fn conv(inputs: usize, outputs: usize, depth: usize, groups: usize) -> String {
    format!(
        "%0 = input \"x\" : i8[1,4,4,{inputs}]\n%1 = input \"w\" : i8[{outputs},3,3,{depth}]\n%2 = conv2d \"c\"(%0, %1) \
         {{strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = {groups}, layout = nhwc, data_zero_point = \
         0, weight_zero_point = 0}} : i32[1,4,4,{outputs}]\noutput \"y\" = %2"
    )
}

#[test]
fn padding_costs_the_array_nothing() {
    // 100 taps inside the image, two blocks of input and two of output channels.
    let found = bound(&preset("1x16x16"), &conv(32, 32, 32, 1));
    let bytes = 16 * 32 + 9 * 32 * 32 + 16 * 32;
    assert_eq!(found, Roofline { array: 100 * 4, vector: 0, bus: bytes / 8 });
    assert_eq!((found.cycles(), found.unit()), (bytes / 8, "bus"));
}

#[test]
fn few_channels_share_entries() {
    // 4, 6 and 9 taps of three channels: one, two and two micro-ops for 4, 8 and 4 pixels.
    assert_eq!(bound(&preset("1x16x16"), &conv(3, 16, 3, 1)).array, 4 + 2 * 8 + 2 * 4);
    // Four rows of an entry hold four pixels.
    assert_eq!(bound(&preset("4x16x16"), &conv(3, 16, 3, 1)).array, 28 / 4);
}

#[test]
fn array_and_vector_unit_share_depthwise_taps() {
    let both = preset("1x16x16");
    let found = bound(&both, &conv(16, 16, 1, 16));
    assert_eq!((found.array, found.vector), (50, 50));
    let alone = HwConfig { vector_mac: false, ..both.clone() };
    let found = bound(&alone, &conv(16, 16, 1, 16));
    assert_eq!((found.array, found.vector), (100, 0));
    // A slow vector unit takes fewer taps: 100 x 4 / (1 + 4).
    let slow = HwConfig { vector_lanes: 4, ..both };
    let found = bound(&slow, &conv(16, 16, 1, 16));
    assert_eq!((found.array, found.vector), (80, 80));
}

#[test]
fn work_is_divided_from_the_cheapest_on() {
    assert_eq!(divided([10.0, 0.0], vec![]), [10.0, 0.0]);
    // 6 more for the array than for the vector unit, whose share of the second item costs less.
    assert_eq!(divided([0.0, 0.0], vec![[3.0, 9.0], [3.0, 1.0]]), [2.5, 2.5]);
    // The vector unit is already the busier one.
    assert_eq!(divided([0.0, 50.0], vec![[20.0, 1.0]]), [20.0, 50.0]);
}

#[test]
fn poolings_and_requantization_take_rows_of_the_vector_unit() {
    let config = preset("1x16x16");
    let pool = |kernel: usize, stride: usize, to: usize| {
        bound(
            &config,
            &format!(
                "%0 = input \"x\" : i8[1,8,8,16]\n%1 = max_pool2d \"p\"(%0) {{kernel = [{kernel}, {kernel}], strides = \
                 [{stride}, {stride}], pads = [0, 0, 0, 0], dilations = [1, 1], layout = nhwc}} : \
                 i8[1,{to},{to},16]\noutput \"y\" = %1"
            ),
        )
    };
    // Four elements become one by three operations.
    assert_eq!(pool(2, 2, 4).vector, 3 * 16);
    // Windows of 3 x 3 with steps of 2 read 7 x 7 pixels.
    assert_eq!(pool(3, 2, 3).vector, 49 - 9);
    assert_eq!(pool(1, 1, 8).vector, 0);
    let sum = "%0 = input \"a\" : i8[2,32]\n%1 = input \"b\" : i8[2,32]\n%2 = qadd \"s\"(%0, %1) {params = [0, 1, 0, 0, 1, 0, \
               0, 1, 0, 20, -128, 127]} : i8[2,32]\noutput \"y\" = %2";
    // Rows of 16, 3 passes over 8 lanes.
    assert_eq!(bound(&config, sum), Roofline { array: 0, vector: 4 * 6, bus: 3 * 64 / 8 });
}

#[test]
fn either_operand_of_a_product_can_be_the_weights() {
    let product = |m: usize, n: usize| {
        format!(
            "%0 = input \"a\" : i8[3,{m},64]\n%1 = input \"b\" : i8[3,64,{n}]\n%2 = qmatmul \"m\"(%0, %1) {{a_zero_point = \
             0, b_zero_point = 0}} : i32[3,{m},{n}]\noutput \"y\" = %2"
        )
    };
    let config = preset("1x16x16");
    assert_eq!(bound(&config, &product(17, 16)).array, 3 * 17 * 4);
    assert_eq!(bound(&config, &product(16, 17)).array, 3 * 17 * 4);
}

#[test]
fn values_between_operators_do_not_cross_the_bus() {
    let text = "graph \"g\" {\n%0 = input \"x\" : i8[2,32]\n%1 = input \"t\" : i8[256]\n%2 = lookup \"a\"(%0, %1) : \
                i8[2,32]\n%3 = reshape \"r\"(%2) {shape = [4, 16]} : i8[4,16]\n%4 = lookup \"b\"(%3, %1) : i8[4,16]\n\
                output \"y\" = %4\n}\n";
    let graph = parse(text, &Blobs::new()).unwrap();
    let config = preset("1x16x16");
    let bus = |names: &[&str]| {
        let nodes = graph.nodes().filter(|(_, node)| names.contains(&node.name.as_str())).map(|(id, _)| id).collect();
        roofline(&graph, &nodes, &config).unwrap().bus
    };
    assert_eq!(bus(&["a", "r", "b"]), (64 + 64) / 8);
    // The host computes one of them.
    assert_eq!(bus(&["a"]), (64 + 64) / 8);
    assert_eq!(bus(&["b"]), (64 + 64) / 8);
    assert_eq!(bus(&["a", "b"]), 4 * 64 / 8);
    assert_eq!(bus(&[]), 0);
}

#[test]
fn a_symbolic_size_has_no_bound() {
    let text = "graph \"g\" {\n%0 = input \"x\" : i8[N,32]\n%1 = input \"t\" : i8[256]\n%2 = lookup \"a\"(%0, %1) : \
                i8[N,32]\noutput \"y\" = %2\n}\n";
    let graph = parse(text, &Blobs::new()).unwrap();
    let nodes = graph.nodes().map(|(id, _)| id).collect();
    assert_eq!(roofline(&graph, &nodes, &preset("1x16x16")), None);
}
