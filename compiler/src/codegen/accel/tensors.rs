//! Places a program's tensors in device memory.

use super::emit::{DeviceTensor, Emit};
use super::layer::Layer;
use super::view::View;
use crate::graph::{Graph, ValueId};
use std::collections::HashMap;
use tilewright_driver::{DriverError, Role};
use tilewright_runtime::artifact::TensorPlace;
use tilewright_runtime::placement::{self, Buffer};

/// Alignment of tensors in their region.
const ALIGN: u64 = 64;

/// Tensors that the host writes and reads, in the program's order.
pub struct Borders {
    pub inputs: Vec<(ValueId, View)>,
    pub outputs: Vec<(ValueId, View)>,
}

impl Emit<'_> {
    /// Places every tensor in one region.
    ///
    /// Inputs live from the start to their last reader, outputs from their layer to the end, and all other tensors from
    /// their layer to their last reader.
    ///
    /// # Errors
    /// The driver refuses the region.
    pub fn place_tensors(
        &mut self,
        graph: &Graph,
        layers: &[&Layer],
        outputs: &[ValueId],
    ) -> Result<Borders, DriverError> {
        let (config, mut inputs, mut out_list) = (self.config, Vec::new(), Vec::new());
        let (root, seen) = (self.aliases.root, self.aliases.view);
        let region = self.b.region("tensors", Role::Scratch, 0)?;
        let produced: HashMap<ValueId, (View, usize)> =
            layers.iter().enumerate().map(|(i, l)| (l.output.0, (l.output.1, i))).collect();
        // The view in which a layer of this program wrote a value, if `view` is how the value is read.
        let inside = |v: ValueId, view: View| {
            let made = produced.get(&root(v)).map(|(made, _)| *made)?;
            (seen(v).unwrap_or(made) == view).then_some(made)
        };
        // Each tensor with its view, and its lifetime counted in layers.
        let mut tensors: Vec<((ValueId, View), Buffer)> = Vec::new();
        let mut number: HashMap<(ValueId, View), usize> = HashMap::new();
        let mut add = |tensors: &mut Vec<((ValueId, View), Buffer)>, key: (ValueId, View), first: usize| {
            *number.entry(key).or_insert_with(|| {
                let bytes = key.1.layout(config).bytes() as u64;
                tensors.push((key, Buffer { bytes, first, last: first }));
                tensors.len() - 1
            })
        };
        for (i, layer) in layers.iter().enumerate() {
            let kept = usize::from(layer.on_chip.input.is_some());
            for &(value, view) in &layer.inputs[kept..] {
                let made = inside(value, view);
                let key = made.map_or((value, view), |made| (root(value), made));
                if made.is_none() && !inputs.contains(&key) {
                    inputs.push(key);
                }
                let at = add(&mut tensors, key, 0);
                tensors[at].1.last = i;
            }
            if !layer.on_chip.hides_output() {
                let at = add(&mut tensors, layer.output, i);
                tensors[at].1.last = tensors[at].1.last.max(i);
            }
        }
        for &value in outputs {
            let Some(&(view, made)) = produced.get(&root(value)) else { continue };
            let at = add(&mut tensors, (root(value), view), made);
            tensors[at].1.last = layers.len();
            out_list.push((value, seen(value).unwrap_or(view)));
        }
        let buffers: Vec<Buffer> = tensors.iter().map(|(_, b)| *b).collect();
        let placed = placement::place(&buffers, ALIGN);
        self.b.grow(region, placed.bytes);
        for (&((value, view), buffer), &offset) in tensors.iter().zip(&placed.offsets) {
            self.places.insert((value, view), DeviceTensor { region, offset, layout: view.layout(config) });
            self.tensors.push(TensorPlace { name: graph.value_name(value).to_string(), offset, buffer });
        }
        for &(value, view) in layers.iter().flat_map(|layer| &layer.inputs) {
            // An alias that is read with another view.
            let made = inside(value, view).filter(|made| *made != view);
            if let Some(place) = made.and_then(|made| self.places.get(&(root(value), made)).copied()) {
                self.places.insert((value, view), DeviceTensor { layout: view.layout(config), ..place });
            }
        }
        for &(value, view) in &inputs {
            let place = self.places[&(value, view)];
            self.b.input(graph.value_name(value), region, place.offset, place.layout.bytes() as u64);
        }
        for &(value, _) in &out_list {
            let place = self.places[&(root(value), produced[&root(value)].0)];
            self.b.output(graph.value_name(value), region, place.offset, place.layout.bytes() as u64);
        }
        Ok(Borders { inputs, outputs: out_list })
    }
}
