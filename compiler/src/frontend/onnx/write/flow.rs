//! Writes If and Loop, whose graphs read values around them by name.

use super::super::proto::{AttributeProto, GraphProto, NodeProto, ValueInfoProto};
use super::{WriteError, Writer};
use crate::graph::{Graph, Node, Op};

fn graph(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto { name: name.into(), g: Some(Box::new(graph)), r#type: 5, ..Default::default() }
}

impl<'g> Writer<'g> {
    /// Writes a node with regions.
    pub(super) fn flow(&mut self, node: &'g Node) -> Result<(), WriteError> {
        let operands = node.inputs.iter().map(|&v| self.value(v)).collect::<Result<Vec<_>, _>>()?;
        let (op_type, input, attribute) = match &node.op {
            Op::If(op) => {
                let then = graph("then_branch", self.region(&op.then, &operands[1..])?);
                let otherwise = graph("else_branch", self.region(&op.otherwise, &operands[1..])?);
                ("If", vec![operands[0].clone()], vec![then, otherwise])
            }
            Op::Loop(op) => {
                // The body's own inputs: step, condition and carried values; the others are those around it.
                let (carried, captured) = operands[2..].split_at(op.carried);
                let names: Vec<String> = op.body.inputs().map(|(name, _)| self.fresh(name)).collect();
                let (step, own) = (names[0].clone(), &names[1..=op.carried]);
                let given: Vec<String> = names[..=op.carried].iter().chain(captured).cloned().collect();
                let mut body = self.region(&op.body, &given)?;
                let condition = self.fresh("condition");
                let inner = self.inside(&op.body);
                let places: Vec<_> = op.body.inputs().map(|(_, v)| v).collect();
                let mut input: Vec<ValueInfoProto> = vec![inner.info(&step, places[0])?];
                input.push(ValueInfoProto { name: condition, ..body.output[0].clone() });
                for (name, &v) in own.iter().zip(&places[1..]) {
                    input.push(inner.info(name, v)?);
                }
                body.input = input;
                let input = operands[..2].iter().chain(carried).cloned().collect();
                ("Loop", input, vec![graph("body", body)])
            }
            _ => return Ok(()),
        };
        let output = node.outputs.iter().map(|&v| self.result_name(node, v)).collect();
        let (name, op_type) = (node.name.clone(), op_type.to_string());
        self.written.push(NodeProto { input, output, name, op_type, attribute, ..Default::default() });
        Ok(())
    }

    /// A writer of a graph within this one.
    fn inside<'r>(&self, region: &'r Graph) -> Writer<'r> {
        Writer {
            graph: region,
            names: vec![None; region.value_count()],
            taken: self.taken.clone(),
            written: Vec::new(),
            constants: Vec::new(),
            declared: Vec::new(),
            domains: self.domains.clone(),
        }
    }

    /// A region's graph; `given` has the names of its inputs.
    #[allow(clippy::needless_update)] // messages can have fields that a written file does not need
    fn region(&mut self, region: &Graph, given: &[String]) -> Result<GraphProto, WriteError> {
        let mut inner = self.inside(region);
        for ((_, v), name) in region.inputs().zip(given) {
            inner.names[v.0] = Some(name.clone());
        }
        inner.nodes(&[])?;
        let mut output = Vec::new();
        for (name, v) in region.outputs() {
            // An output has a name of its own, also where it is an input or another output.
            let (from, to) = (inner.value(*v)?, inner.fresh(name));
            inner.emit("Identity", &[&from], &to, vec![]);
            output.push(inner.info(&to, *v)?);
        }
        // Names are unique in the whole file.
        (self.taken, self.domains) = (inner.taken, inner.domains);
        Ok(GraphProto {
            node: inner.written,
            name: region.name().to_string(),
            initializer: inner.constants,
            output,
            value_info: inner.declared,
            ..Default::default()
        })
    }
}
