//! The steps of a product in tiles, with all that follows it in them.

use super::epilogue::Epilogue;
use super::expression::{BELOW, Data, Factors, Second, Sums, gemm, products, second, sums};
use super::frame::{Frame, Loops, Operand};
use super::further::Further;
use super::op::Conv;
use super::phases::joined;
use super::sizes::{Sizes, column_span, row_span};
use super::tiles::ConvTile;
use super::windows::PooledWindows;
use crate::codegen::accel::border::Border;
use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::limits::MOST_SLOTS;
use crate::codegen::accel::ops::pool::{PoolExpression, WINDOWS};
use crate::codegen::accel::requant::{keeps_params, requantized};
use crate::codegen::accel::scheduled::{LayerInput, LayerSchedule, template};
use crate::codegen::accel::view::View;
use crate::graph::op::{self, Op};
use crate::te::{Array, Builder, DType, Name, TensorRef, ops};
use tilewright_hw::config::{HwConfig, Mem};

/// Entries of a row of weights from which on its load takes much longer than a further instruction.
const LONG_ROW: usize = 16;

/// Most slots of the weights if nothing else is loaded.
const MOST_OF_WEIGHTS: usize = 64;

/// Most slots of an operand that is combined with the results.
const MOST_WAITING: usize = 4;

/// Products of data and weights, with all that follows them in their tiles: one, or one for each phase.
struct Product<'a> {
    convs: &'a [Conv],
    /// The first one, whose sizes all have.
    conv: &'a Conv,
    frame: &'a Frame,
    tile: &'a ConvTile,
    layer: &'a Layer,
    config: &'a HwConfig,
    sizes: Sizes,
    /// A fused pooling.
    windows: Option<PooledWindows<'a>>,
    /// View of the results that are stored: those of a fused pooling, or of the product.
    stored: View,
    /// Weights beyond 8 bits.
    further: Option<Further>,
}

/// Returns products of data and weights in tiles: one, or one for each phase.
pub fn product(
    mut b: Builder,
    (convs, frame): (&[Conv], &Frame),
    data: Data,
    tile: &ConvTile,
    layer: &Layer,
    config: &HwConfig,
    constants: Constants,
) -> Option<LayerSchedule> {
    let [input, output] = frame.views;
    let conv = convs.first()?;
    let sizes = Sizes::new(conv, input, output, config);
    let windows = PooledWindows::of(conv, layer);
    let stored = windows.map_or(output, |_| layer.output_view());
    let further = Further::new(convs, &sizes, input, [tile.out_blocks, tile.in_blocks], config);
    let product = Product { convs, conv, frame, tile, layer, config, sizes, windows, stored, further };
    let computed = product.computed(&mut b, data, constants)?;
    let steps = product.steps(&computed)?;
    Some(LayerSchedule { program: b.finish(&[computed.output]), inputs: computed.inputs, steps: template(&steps)? })
}

/// The expression of a product, and what its steps need to know of it.
struct Computed {
    data: Data,
    product: Sums,
    /// The last results that are computed, and the tensor that is stored.
    last: TensorRef,
    output: TensorRef,
    /// What the inputs are.
    inputs: Vec<LayerInput>,
    /// Results that the blocks before the last one leave in a scratchpad, in their order.
    between: Vec<(Name, Mem)>,
    /// Second operands, each with the block that reads it.
    operands: Vec<(Name, Operand)>,
    /// The steps that copy parameters to param.
    params: String,
    /// The blocks that copy the parameters of requantizations, and those of a fused pooling.
    copies: Vec<String>,
    pool_copies: Vec<String>,
    /// How often the results of a tile are computed.
    patterns: usize,
    /// The steps that make instructions of what follows the sums.
    instructions: String,
}

impl Product<'_> {
    /// Output tiles of all channels of a product.
    fn own_channels(&self) -> usize {
        self.sizes.out_blocks * self.sizes.out_ratio
    }

    /// Output tiles of all channels of all products.
    fn out_channels(&self) -> usize {
        self.frame.products() * self.own_channels()
    }

    /// Adds the expression to `b`.
    fn computed(&self, b: &mut Builder, data: Data, constants: Constants) -> Option<Computed> {
        let Product { convs, conv, frame, config, .. } = self;
        let (finish, slope) = joined(convs, self.own_channels() * config.block_out as usize);
        let factors = Factors { convs, data: &data, frame, further: self.further.as_ref() };
        let mut product = sums(b, "", &factors, config, constants);
        let inputs = std::mem::take(&mut product.inputs);
        let sums = product.tensor.clone();
        // Padding around the results, if a fused pooling reads any.
        let stored = [self.tile.rows, self.tile.columns];
        let border = self.windows.map(|w| w.border(stored, config)).filter(|border| border.sides() > 0);
        let of_first = border.as_ref().filter(|_| slope.is_none());
        let tiles = self.out_channels() as i64;
        let done = requantized(b, &finish, &sums, of_first, tiles, |i| frame.out_tile(i));
        let mut made = Computed {
            data,
            product,
            last: done.result.clone(),
            output: done.result.clone(),
            inputs: [LayerInput::Tensor(0)].into_iter().chain(inputs).chain(done.inputs).collect(),
            between: Vec::new(),
            operands: Vec::new(),
            params: done.steps,
            copies: done.copies,
            pool_copies: Vec::new(),
            patterns: 1,
            instructions: frame.instruction(&done.result, "requant"),
        };
        if let Some(slope) = &slope {
            let around = (border.as_ref(), *frame);
            let Second { below, choice, parameters } = second(b, &finish, slope, [&sums, &done.result], tiles, around);
            made.instructions += &(frame.instruction(&below, "requant") + &frame.instruction(&choice, slope.op.name()));
            made.between.extend([(done.result.name.clone(), Mem::Out), (below.name.clone(), Mem::Acc)]);
            made.params += &parameters.steps(below.name.as_str());
            made.copies.extend(parameters.copies());
            made.inputs.extend(parameters.inputs);
            made.last = choice;
        }
        for step in &conv.epilogue {
            self.follow(b, &mut made, step, border.as_ref())?;
        }
        if self.windows.is_none() {
            made.output = frame.output(b, &made.last);
        }
        Some(made)
    }

    /// Adds a fused operator on the last results.
    fn follow(&self, b: &mut Builder, made: &mut Computed, step: &Epilogue, border: Option<&Border>) -> Option<()> {
        let (frame, last, shape) = (self.frame, made.last.clone(), made.product.tensor.shape.clone());
        made.between.push((last.name.clone(), Mem::Out));
        made.last = match step {
            Epilogue::Pool { pool, of } => {
                let size = [self.tile.rows, self.tile.columns];
                let p = PoolExpression::of_results(b, pool, [*of, self.stored], &last, size, self.config);
                if let Some(border) = border {
                    let entry = frame.entry(&last);
                    let padding =
                        (0..border.sides()).map(|k| format!("tensorize {}.i{entry}.pad{k} clip; ", last.name));
                    made.instructions = format!("decompose_padding {0} {0}.i0; ", last.name)
                        + &padding.collect::<String>()
                        + &made.instructions;
                }
                made.between.push((p.reduced.name.clone(), Mem::Acc));
                made.instructions += &p.instructions;
                made.params += &p.params;
                made.inputs.extend(p.inputs);
                made.pool_copies = p.copies;
                (made.output, made.patterns) = (p.output, p.patterns);
                p.result
            }
            Epilogue::Pair { op, input } => {
                let other = frame.operand(b, &shape);
                let next = ops::build(b, &op.graph_op(), &[last, other.tensor.clone()], &shape)?;
                made.inputs.push(LayerInput::Tensor(*input));
                made.operands.push((next.name.clone(), other));
                made.instructions += &frame.instruction(&next, op.operation().name());
                next
            }
            Epilogue::Lookup(table) => {
                let entries = b.input("table", DType::I8, &[table.len() as i64]);
                let next = ops::build(b, &Op::Lookup(op::Lookup {}), &[last, entries.clone()], &shape)?;
                made.inputs.push(LayerInput::Constant(Array::of_bytes(&entries.shape, table)));
                made.instructions +=
                    &format!("cache_read {} {} param; {}", next.name, entries.name, frame.instruction(&next, "lut"));
                next
            }
        };
        Some(())
    }

    /// Returns the steps.
    fn steps(&self, of: &Computed) -> Option<String> {
        let is_stored = of.output.name == of.last.name;
        let write = if is_stored { format!("{}.write", of.last.name) } else { of.output.name.to_string() };
        let Loops { steps: divided, blocks, pixels, phases } = self.frame.loops(&write, is_stored, self.tile);
        let columns = pixels.last()?.clone();
        let order = match self.tile.pixels_inside {
            true => [phases, vec![blocks.clone()], pixels].concat(),
            false => [pixels, phases, vec![blocks.clone()]].concat(),
        };
        let inner = order.last()?.clone();
        let mut made = Steps {
            of,
            is_stored,
            blocks,
            columns,
            inner,
            order,
            text: String::new(),
            instructions: of.instructions.clone(),
            compacted: Vec::new(),
            slotted: Vec::new(),
        };
        let operands = self.scopes(&mut made);
        made.text += &divided;
        self.place_results(&mut made, &operands);
        self.place_operands(&mut made);
        self.size_results(&mut made, operands);
        Some(self.finished(made))
    }

    /// Puts buffers in scratchpads. Returns the buffer of each second operand, after the block that reads it.
    fn scopes<'c>(&self, made: &mut Steps<'c>) -> Vec<(&'c Name, String)> {
        let (of, frame) = (made.of, self.frame);
        // Results that stay in inp are written there. If they are also stored, they are moved there from out.
        let results_in = if self.layer.on_chip.hides_output() { Mem::Inp } else { Mem::Out }.name();
        let data = &of.data.tensor;
        made.text += &frame.omit(data);
        of.operands.iter().filter(|(_, o)| o.is_copy).for_each(|(_, o)| made.text += &frame.omit(&o.tensor));
        made.text += &format!(
            "set_scope {} inp; cache_read sums weights wgt; set_scope sums acc; {}{} {} {results_in}; ",
            data.name,
            of.params,
            if made.is_stored { "cache_write" } else { "set_scope" },
            of.last.name
        );
        if let Some(further) = &of.product.further {
            let omitted = if self.leaves_out() { format!("omit {}; ", further.name) } else { String::new() };
            made.text += &format!("{omitted}set_scope {} wgt; ", further.name);
        }
        for (name, mem) in &of.between {
            made.text += &format!("set_scope {name} {}; ", mem.name());
        }
        let scope = self.tile.operands.name();
        let mut buffers = Vec::new();
        for (reader, Operand { tensor, is_copy }) in &of.operands {
            if *is_copy {
                made.text += &format!("set_scope {} {scope}; ", tensor.name);
                made.instructions += &frame.rows_apart(tensor);
                buffers.push((reader, tensor.name.to_string()));
            } else {
                made.text += &format!("cache_read {reader} {} {scope}; ", tensor.name);
                buffers.push((reader, format!("{}.{scope}", tensor.name)));
            }
        }
        buffers
    }

    /// Whether param holds all parameters at once.
    fn keeps_params(&self) -> bool {
        let of_pool = self.windows.is_some_and(|w| w.requantizes());
        let requantizations = 1 + usize::from(self.conv.slope.is_some()) + usize::from(of_pool);
        keeps_params(requantizations * self.out_channels(), self.config)
    }

    /// Whether some groups of weights beyond 8 bits have fewer tiles than others.
    fn leaves_out(&self) -> bool {
        self.further.as_ref().is_some_and(|further| !further.is_even())
    }

    /// Moves what is computed to the innermost loop over tiles. A block that is moved to the start of a loop runs before
    /// those that were moved there earlier.
    fn place_results(&self, made: &mut Steps, operands: &[(&Name, String)]) {
        let (of, inner, name) = (made.of, made.inner.clone(), &made.of.last.name);
        made.compacted.push(of.product.tensor.name.to_string());
        if !self.layer.on_chip.hides_output() {
            made.compacted.push(made.results());
        }
        for stage in of.between.iter().map(|(stage, _)| stage).chain([name]).rev() {
            made.text += &format!("compute_at {stage} {inner}; ");
            if stage != name {
                made.compacted.push(stage.to_string());
            }
            for (_, operand) in operands.iter().filter(|(reader, _)| *reader == stage) {
                made.text += &format!("compute_at {operand} {inner}; ");
                made.compacted.push(operand.clone());
            }
        }
        // The parameters of the pooling are loaded after those of the product, which are needed earlier.
        for copy in &of.pool_copies {
            if self.windows.is_some_and(|w| w.requantizes()) && !self.keeps_params() {
                made.text += &format!("compute_at {copy} {}; ", made.blocks);
                made.compacted.push(copy.clone());
            } else {
                made.text += &format!("compute_at {copy} {inner}; ");
            }
        }
        made.text += &format!("compute_at sums {inner}; ");
        if self.layer.on_chip.output.is_some() && self.layer.on_chip.stored {
            made.text += &format!("keep {name}.write {inner} inp; ");
            made.instructions += &format!("tensorize {name}.keep.i{} move; ", self.frame.entry(&of.last));
        }
    }

    /// Parts of the input channels that are summed one after the other.
    fn passes(&self) -> usize {
        self.sizes.in_blocks.div_ceil(self.tile.in_blocks)
    }

    /// Number of tiles of output blocks of all products, and of pixels.
    fn tiles(&self) -> [usize; 2] {
        let of_blocks = self.frame.products() * self.sizes.out_blocks.div_ceil(self.tile.out_blocks);
        [of_blocks, self.frame.pixel_tiles(self.tile, self.stored)]
    }

    /// Rows and columns of the results that a tile computes.
    fn pixels(&self) -> [usize; 2] {
        let stored = [self.tile.rows, self.tile.columns];
        self.windows.map_or(stored, |w| w.pixels(stored))
    }

    /// Entries of a memory that the layer can use.
    fn room(&self, mem: Mem) -> u32 {
        match (mem, self.layer.on_chip.room) {
            (Mem::Inp, Some((_, entries))) => entries,
            _ => self.config.entries(mem),
        }
    }

    /// Slots for that many entries, one for each iteration if there is room: loads run ahead as far as the memory allows.
    fn slots(&self, of: &Computed, entries: usize, iterations: usize, mem: Mem) -> usize {
        let shared = if mem == self.tile.operands { 1 + of.operands.len() } else { 1 };
        (self.room(mem) as usize / shared / entries.max(1)).min(iterations).max(1)
    }

    /// Moves the copies of data, weights and parameters to the loops where they are read.
    fn place_operands(&self, made: &mut Steps) {
        let Product { conv, frame, tile, sizes, config, .. } = self;
        let (of, passes, [out_tiles, pixel_tiles]) = (made.of, self.passes(), self.tiles());
        let (input, data) = (frame.views[0], &of.data.tensor);
        let (grouped, keeps_input) = (sizes.is_grouped(conv, input, config), self.layer.on_chip.input.is_some());
        let (data_at, weights_at) = if grouped {
            (made.inner.clone(), made.blocks.clone())
        } else if passes > 1 {
            let ([outer, entry], within) = (frame.result_loops(&of.product.tensor), frame.depth_loops("sums"));
            made.text += &format!(
                "split sums.d {}; reorder sums.d.0 {outer} sums.d.1 {within} {entry} sums.k; \
                 decompose_reduction sums sums.d.0; ",
                tile.in_blocks
            );
            ("sums.d.0".into(), "sums.d.0".into())
        } else {
            (made.columns.clone(), made.blocks.clone())
        };
        if let Some(further) = &of.product.further {
            made.text += &format!("compute_at {} {weights_at}; ", further.name);
        }
        made.text += &format!("compute_at {} {data_at}; compute_at weights.wgt {weights_at}; ", data.name);
        // What is read again stays, if all of it fits.
        let again = |times: bool, t: &TensorRef, further: usize, mem: Mem| {
            let bytes = t.shape.iter().product::<i64>() as u64 + further as u64 * u64::from(config.entry_bytes(mem));
            times && bytes <= u64::from(self.room(mem)) * u64::from(config.entry_bytes(mem))
        };
        let reads_data_again = (tile.pixels_inside || passes > 1) && out_tiles > 1 && !grouped;
        let reads_weights_again = (!tile.pixels_inside || passes > 1) && pixel_tiles > 1;
        let tiles = out_tiles * pixel_tiles;
        let (data_iterations, weights_iterations) = match (passes > 1, tile.pixels_inside) {
            (false, false) if grouped => (tiles, tiles),
            (true, _) => (passes * tiles, passes * tiles),
            (false, true) => (tiles, out_tiles),
            (false, false) => (pixel_tiles, tiles),
        };
        if !keeps_input && !again(reads_data_again, data, 0, Mem::Inp) {
            let pixels = self.pixels();
            let window = [row_span(conv, 0, pixels[0], input).0, column_span(conv, 0, pixels[1], input)];
            let blocks = match grouped {
                true => sizes.blocks_for(conv, 0..tile.out_blocks.min(sizes.out_blocks), input, config).1,
                false => tile.in_blocks,
            };
            let entries = blocks * sizes.in_ratio * window.map(|span| span.padded()).iter().product::<usize>();
            let slots = self.slots(of, entries, data_iterations, Mem::Inp).min(MOST_SLOTS);
            made.compacted.push(data.name.to_string());
            made.slotted.push((data.name.to_string(), slots));
        }
        let more = self.further.as_ref();
        if !again(reads_weights_again, &of.product.weights, more.map_or(0, Further::entries), Mem::Wgt) {
            let in_tiles = (tile.in_blocks * sizes.in_ratio).min(sizes.in_tiles);
            let entries = tile.out_blocks * sizes.out_ratio * in_tiles * conv.taps();
            // If the data stay in inp, only weights are loaded, and long rows as soon as there is room for each.
            let most = if keeps_input { MOST_OF_WEIGHTS } else { MOST_SLOTS };
            if keeps_input && passes > 1 && tile.in_blocks * conv.taps() >= LONG_ROW {
                made.text += "annotate weights.wgt.i0 unrolled; ";
            }
            let entries = entries + more.map_or(0, Further::most);
            let slots = self.slots(of, entries, weights_iterations, Mem::Wgt).min(most);
            for buffer in ["weights.wgt"].into_iter().chain(of.product.further.iter().map(|t| t.name.as_str())) {
                made.compacted.push(buffer.into());
                made.slotted.push((buffer.into(), slots));
            }
        }
        if !self.keeps_params() {
            for copy in &of.copies {
                made.text += &format!("compute_at {copy} {}; ", made.blocks);
                made.compacted.push(copy.clone());
            }
        }
    }

    /// Gives what is computed its slots, and second operands theirs.
    fn size_results(&self, made: &mut Steps, operands: Vec<(&Name, String)>) {
        let Product { tile, sizes, config, .. } = self;
        let (of, name) = (made.of, &made.of.last.name);
        let tiles = self.tiles().iter().product();
        let entries = tile.out_blocks * sizes.out_ratio * tile.rows * tile.columns;
        let waiting = self.slots(of, entries, tiles, tile.operands).min(MOST_WAITING);
        made.slotted.extend(operands.into_iter().map(|(_, operand)| (operand, waiting)));
        // Sums in banks of their own, so that gemm writes one bank while the vector unit reads another.
        let bank = (config.entries(Mem::Acc) / config.banks(Mem::Acc)) as usize;
        let [rows, columns] = self.pixels();
        let summed = (tile.out_blocks * sizes.out_ratio * rows * columns).max(entries);
        let of_sums = self.slots(of, summed.next_multiple_of(bank), tiles, Mem::Acc).min(MOST_SLOTS);
        made.slotted.push(("sums".into(), of_sums));
        // The second requantization writes over the sums.
        made.slotted.extend(self.conv.slope.iter().map(|_| (BELOW.into(), of_sums)));
        if self.layer.on_chip.output.is_some() {
            made.slotted.push((format!("{name}.inp"), 1));
        } else if of.between.is_empty() {
            // Nothing reads the results in out except stores.
            let slots = self.slots(of, entries, tiles, Mem::Out).min(MOST_SLOTS);
            made.slotted.push((made.results(), slots));
        }
        if self.windows.is_some() {
            // The vector unit writes and reads the product's results itself. They have one half of out, those of the
            // pooling the other.
            let of_product = of.between.iter().filter(|(_, mem)| *mem == Mem::Out);
            made.slotted.extend(of_product.map(|(stage, _)| (stage.to_string(), 1)));
            if !self.layer.on_chip.hides_output() {
                let room = config.entries(Mem::Out) as usize / 2;
                let results = (room / (entries * of.patterns)).min(tiles).clamp(1, MOST_SLOTS);
                made.slotted.push((made.results(), results));
            }
        }
        // The reduced windows of a pooling take the entries of the sums, which are no longer needed.
        for (reduced, _) in of.between.iter().filter(|(name, _)| name.as_str() == WINDOWS) {
            made.slotted.push((reduced.to_string(), of_sums));
            made.text += &format!("overlay {reduced} sums; ");
        }
    }

    /// Returns all steps.
    fn finished(&self, made: Steps) -> String {
        let Steps { of, order, mut text, instructions, compacted, slotted, .. } = made;
        for buffer in &compacted {
            text += &format!("compact {buffer}; ");
        }
        for (buffer, slots) in &slotted {
            text += &format!("slots {buffer} {slots}; ");
        }
        if let Some(bytes) = of.data.rows {
            // Each row of the kernel is a load of its own.
            text += &format!("split data.i3 {bytes}; reorder data.i0 data.i3.0 data.i1 data.i2 data.i3.1; ");
        }
        for at in &order {
            text += &format!("annotate {at} pipeline; ");
        }
        text += &self.frame.rows_apart(&of.data.tensor);
        if self.passes() > 1 {
            text += "annotate sums.d.0 pipeline; ";
            text += &products(&of.product, self.frame);
        } else {
            text += &gemm(&of.product, self.frame);
        }
        text + &instructions
    }
}

/// The steps of a product in the making.
struct Steps<'c> {
    of: &'c Computed,
    /// Whether the last results are stored as they are.
    is_stored: bool,
    /// The loops over tiles of blocks and of columns, the innermost one, and all of them.
    blocks: String,
    columns: String,
    inner: String,
    order: Vec<String>,
    text: String,
    /// The last steps, which make instructions.
    instructions: String,
    /// Buffers that hold only what an iteration needs, and numbers of slots.
    compacted: Vec<String>,
    slotted: Vec<(String, usize)>,
}

impl Steps<'_> {
    /// The buffer of the last results.
    fn results(&self) -> String {
        let name = &self.of.last.name;
        if self.is_stored { format!("{name}.out") } else { name.to_string() }
    }
}
