//! The registry: operators that can be imported, each with its import function and attributes.

mod attention;
mod binary;
mod control;
mod conv;
mod einsum;
mod gemm;
mod integer;
mod linear_attention;
mod loss;
mod movement;
mod norm;
mod pad;
mod pool;
mod quantize;
mod recurrent;
mod reduce;
mod resize;
mod runtime;
mod sample;
mod scatter;
mod selection;
mod sequence;
mod shape;
mod spectral;
mod unary;

use super::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::volume::Sliding3;
use crate::frontend::semantic::window::{self, Padding, Sliding, Window};
use crate::graph::op::{Layout, Transpose};
use crate::graph::{TensorType, ValueId};

type Import = fn(&mut NodeContext) -> Result<(), Reason>;

/// An operator of the format.
pub(super) struct Operator {
    /// Its name, prefixed with its domain unless that is the default one.
    pub name: &'static str,
    pub import: Import,
    /// Attributes that it reads.
    pub attributes: &'static [&'static str],
    /// Attributes that do not affect inference in the supported element types.
    pub ignored: &'static [&'static str],
}

const NCHW: Layout = Layout::Nchw;

const CONV: &[&str] = &["auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"];
const REDUCE: &[&str] = &["axes", "keepdims", "noop_with_empty_axes"];
const ARG: &[&str] = &["axis", "keepdims", "select_last_index"];

macro_rules! attributes {
    () => { &[] };
    ([$($list:tt)*]) => { &[$($list)*] };
    ($name:ident) => { $name };
}

macro_rules! registry {
    ($($name:literal $module:ident::$function:ident $attributes:tt $(ignored $ignored:tt)?;)*) => {
        const REGISTRY: &[Operator] = &[
            $(Operator {
                name: $name,
                import: $module::$function,
                attributes: attributes!($attributes),
                ignored: attributes!($($ignored)?),
            },)*
        ];
    };
}

registry! {
    "Abs" unary::abs [];
    "Acos" unary::acos [];
    "Acosh" unary::acosh [];
    "Add" binary::add ["axis", "broadcast"];
    "AffineGrid" sample::affine_grid ["align_corners"];
    "And" binary::and ["axis", "broadcast"];
    "ArgMax" reduce::arg_max ARG;
    "ArgMin" reduce::arg_min ARG;
    "Asin" unary::asin [];
    "Asinh" unary::asinh [];
    "Atan" unary::atan [];
    "Atanh" unary::atanh [];
    "Attention" attention::attention
        ["is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap"] ignored ["softmax_precision"];
    "AveragePool" pool::average_pool
        ["auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides"];
    "BatchNormalization" norm::batch ["epsilon", "spatial", "training_mode"] ignored ["is_test", "momentum"];
    "BitCast" unary::bit_cast ["to"];
    "BitShift" binary::bit_shift ["direction"];
    "BitwiseAnd" binary::bitwise_and [];
    "BitwiseNot" unary::bitwise_not [];
    "BitwiseOr" binary::bitwise_or [];
    "BitwiseXor" binary::bitwise_xor [];
    "BlackmanWindow" spectral::blackman ["output_datatype", "periodic"];
    "Cast" unary::cast ["round_mode", "saturate", "to"];
    "CastLike" unary::cast_like ["round_mode", "saturate"];
    "CausalConvWithState" linear_attention::causal_conv ["activation"];
    "Ceil" unary::ceil [];
    "Celu" unary::celu ["alpha"];
    "CenterCropPad" movement::center_crop_pad ["axes"];
    "Clip" unary::clip ["max", "min"];
    "Col2Im" pool::col_to_im ["dilations", "pads", "strides"];
    "Compress" selection::compress ["axis"];
    "Concat" movement::concat ["axis"];
    "ConcatFromSequence" sequence::concat ["axis", "new_axis"];
    "Constant" shape::constant ["sparse_value", "value", "value_float", "value_floats", "value_int", "value_ints"];
    "ConstantOfShape" shape::constant_of_shape ["value"];
    "Conv" conv::conv CONV;
    "ConvInteger" integer::conv_integer CONV;
    "ConvTranspose" conv::conv_transpose
        ["auto_pad", "dilations", "group", "kernel_shape", "output_padding", "output_shape", "pads", "strides"];
    "Cos" unary::cos [];
    "Cosh" unary::cosh [];
    "CumProd" reduce::cum_product ["exclusive", "reverse"];
    "CumSum" reduce::cum_sum ["exclusive", "reverse"];
    "DFT" spectral::dft ["axis", "inverse", "onesided"];
    "DeformConv" conv::deformable ["dilations", "group", "kernel_shape", "offset_group", "pads", "strides"];
    "DepthToSpace" movement::depth_to_space ["blocksize", "mode"];
    "DequantizeLinear" quantize::dequantize_linear ["axis", "block_size", "output_dtype"];
    "Div" binary::div ["axis", "broadcast"];
    "Dropout" shape::dropout [] ignored ["is_test", "ratio", "seed"];
    "DynamicQuantizeLinear" integer::dynamic_quantize [];
    "Einsum" einsum::einsum ["equation"];
    "Elu" unary::elu ["alpha"];
    "Equal" binary::equal ["axis", "broadcast"];
    "Erf" unary::erf [];
    "Exp" unary::exp [];
    "Expand" movement::expand [];
    "EyeLike" shape::eye_like ["dtype", "k"];
    "Flatten" shape::flatten ["axis"];
    "Floor" unary::floor [];
    "GRU" recurrent::gru
        ["activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "layout",
         "linear_before_reset"] ignored ["output_sequence"];
    "Gather" movement::gather ["axis"];
    "GatherElements" movement::gather_elements ["axis"];
    "GatherND" movement::gather_nd ["batch_dims"];
    "Gelu" unary::gelu ["approximate"];
    "Gemm" gemm::gemm ["alpha", "beta", "transA", "transB"] ignored ["broadcast"];
    "GlobalAveragePool" pool::global_average_pool [];
    "GlobalLpPool" pool::global_lp_pool ["p"];
    "GlobalMaxPool" pool::global_max_pool [];
    "Greater" binary::greater [];
    "GreaterOrEqual" binary::greater_or_equal [];
    "GridSample" sample::grid_sample ["align_corners", "mode", "padding_mode"];
    "GroupNormalization" norm::group ["epsilon", "num_groups"] ignored ["stash_type"];
    "HammingWindow" spectral::hamming ["output_datatype", "periodic"];
    "HannWindow" spectral::hann ["output_datatype", "periodic"];
    "HardSigmoid" unary::hard_sigmoid ["alpha", "beta"];
    "HardSwish" unary::hard_swish [];
    "Hardmax" unary::hardmax ["axis"];
    "Identity" shape::identity [];
    "If" control::branch ["else_branch", "then_branch"];
    "InstanceNormalization" norm::instance ["epsilon"];
    "IsInf" unary::is_inf ["detect_negative", "detect_positive"];
    "IsNaN" unary::is_nan [];
    "LRN" norm::local_response ["alpha", "beta", "bias", "size"];
    "LSTM" recurrent::lstm
        ["activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "input_forget", "layout"]
        ignored ["output_sequence"];
    "LayerNormalization" norm::layer ["axis", "epsilon"] ignored ["stash_type"];
    "LeakyRelu" unary::leaky_relu ["alpha"];
    "Less" binary::less [];
    "LessOrEqual" binary::less_or_equal [];
    "LinearAttention" linear_attention::linear_attention
        ["chunk_size", "kv_num_heads", "q_num_heads", "scale", "update_rule"];
    "Log" unary::log [];
    "LogSoftmax" unary::log_softmax ["axis"];
    "Loop" control::loop_ ["body"];
    "LpNormalization" norm::lp ["axis", "p"];
    "LpPool" pool::lp_pool ["auto_pad", "ceil_mode", "dilations", "kernel_shape", "p", "pads", "strides"];
    "MatMul" gemm::matmul [];
    "MatMulInteger" integer::matmul_integer [];
    "Max" binary::max [];
    "MaxPool" pool::max_pool
        ["auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "storage_order", "strides"];
    "MaxUnpool" pool::max_unpool ["kernel_shape", "pads", "strides"];
    "Mean" binary::mean [];
    "MeanVarianceNormalization" norm::mean_variance ["axes"];
    "MelWeightMatrix" spectral::mel_weights ["output_datatype"];
    "Min" binary::min [];
    "Mish" unary::mish [];
    "Mod" binary::modulo ["fmod"];
    "Mul" binary::mul ["axis", "broadcast"];
    "Neg" unary::neg [];
    "NegativeLogLikelihoodLoss" loss::negative_log ["ignore_index", "reduction"];
    "NonMaxSuppression" selection::non_max_suppression ["center_point_box"];
    "NonZero" shape::non_zero [];
    "Not" unary::not [];
    "OneHot" reduce::one_hot ["axis"];
    "Optional" sequence::optional [] ignored ["type"];
    "OptionalGetElement" sequence::get_element [];
    "OptionalHasElement" sequence::has_element [];
    "Or" binary::or [];
    "PRelu" unary::prelu [];
    "Pad" pad::pad ["mode", "pads", "value"];
    "Pow" binary::pow [];
    "QLinearConv" quantize::qlinear_conv CONV;
    "QLinearMatMul" quantize::qlinear_matmul [];
    "QuantizeLinear" quantize::quantize_linear ["axis", "block_size", "output_dtype", "precision", "saturate"];
    "RMSNormalization" norm::rms ["axis", "epsilon"] ignored ["stash_type"];
    "RNN" recurrent::rnn
        ["activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "layout"]
        ignored ["output_sequence"];
    "Range" shape::range [];
    "Reciprocal" unary::reciprocal [];
    "ReduceL1" reduce::l1 REDUCE;
    "ReduceL2" reduce::l2 REDUCE;
    "ReduceLogSum" reduce::log_sum REDUCE;
    "ReduceLogSumExp" reduce::log_sum_exp REDUCE;
    "ReduceMax" reduce::max REDUCE;
    "ReduceMean" reduce::mean REDUCE;
    "ReduceMin" reduce::min REDUCE;
    "ReduceProd" reduce::product REDUCE;
    "ReduceSum" reduce::sum REDUCE;
    "ReduceSumSquare" reduce::sum_square REDUCE;
    "Relu" unary::relu [];
    "Reshape" shape::reshape ["allowzero", "shape"];
    "Resize" resize::resize
        ["antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value",
         "keep_aspect_ratio_policy", "mode", "nearest_mode"];
    "ReverseSequence" movement::reverse_sequence ["batch_axis", "time_axis"];
    "RoiAlign" sample::roi_align
        ["coordinate_transformation_mode", "mode", "output_height", "output_width", "sampling_ratio", "spatial_scale"];
    "RotaryEmbedding" attention::rotary ["interleaved", "num_heads", "rotary_embedding_dim"];
    "Round" unary::round [];
    "STFT" spectral::stft ["onesided"];
    "Scan" control::scan
        ["body", "num_scan_inputs", "scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions"];
    "Scatter" scatter::elements ["axis"];
    "ScatterElements" scatter::elements ["axis", "reduction"];
    "ScatterND" scatter::nd ["reduction"];
    "Selu" unary::selu ["alpha", "gamma"];
    "SequenceAt" sequence::at [];
    "SequenceConstruct" sequence::construct [];
    "SequenceEmpty" sequence::empty [] ignored ["dtype"];
    "SequenceErase" sequence::erase [];
    "SequenceInsert" sequence::insert [];
    "SequenceLength" sequence::length [];
    "SequenceMap" sequence::map ["body"];
    "Shape" shape::shape ["end", "start"];
    "Shrink" unary::shrink ["bias", "lambd"];
    "Sigmoid" unary::sigmoid [];
    "Sign" unary::sign [];
    "SimplifiedLayerNormalization" runtime::rms ["axis", "epsilon"] ignored ["stash_type"];
    "Sin" unary::sin [];
    "Sinh" unary::sinh [];
    "Size" shape::size [];
    "Slice" movement::slice ["axes", "ends", "starts"];
    "Softmax" unary::softmax ["axis"];
    "SoftmaxCrossEntropyLoss" loss::cross_entropy ["ignore_index", "reduction"];
    "Softplus" unary::softplus [];
    "Softsign" unary::softsign [];
    "SpaceToDepth" movement::space_to_depth ["blocksize"];
    "Split" movement::split ["axis", "num_outputs", "split"];
    "SplitToSequence" sequence::split ["axis", "keepdims"];
    "Sqrt" unary::sqrt [];
    "Squeeze" movement::squeeze ["axes"];
    "Sub" binary::sub ["axis", "broadcast"];
    "Sum" binary::sum [];
    "Swish" unary::swish ["alpha"];
    "Tan" unary::tan [];
    "Tanh" unary::tanh [];
    "TensorScatter" movement::tensor_scatter ["axis", "mode"];
    "ThresholdedRelu" unary::thresholded_relu ["alpha"];
    "Tile" movement::tile [];
    "TopK" reduce::top_k ["axis", "k", "largest"] ignored ["sorted"];
    "Transpose" shape::transpose ["perm"];
    "Trilu" movement::trilu ["upper"];
    "Unique" selection::unique ["axis", "sorted"];
    "Unsqueeze" movement::unsqueeze ["axes"];
    "Upsample" resize::upsample ["height_scale", "mode", "scales", "width_scale"];
    "Where" binary::select [];
    "Xor" binary::xor [];
    "com.microsoft.Attention" runtime::attention
        ["do_rotary", "mask_filter_value", "num_heads", "past_present_share_buffer", "qkv_hidden_sizes", "scale",
         "unidirectional"];
    "com.microsoft.BiasGelu" runtime::bias_gelu [];
    "com.microsoft.DequantizeLinear" quantize::dequantize_linear ["axis"];
    "com.microsoft.DynamicQuantizeMatMul" integer::dynamic_quantize_matmul [];
    "com.microsoft.EmbedLayerNormalization" runtime::embed ["epsilon"] ignored ["mask_index_type"];
    "com.microsoft.FastGelu" runtime::fast_gelu [];
    "com.microsoft.FusedConv" runtime::fused_conv
        ["activation", "activation_params", "auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"];
    "com.microsoft.FusedGemm" runtime::fused_gemm
        ["activation", "activation_alpha", "activation_beta", "alpha", "beta", "transA", "transB"]
        ignored ["activation_gamma"];
    "com.microsoft.FusedMatMul" runtime::fused_matmul ["alpha", "transA", "transB", "transBatchA", "transBatchB"];
    "com.microsoft.Gelu" unary::gelu [];
    "com.microsoft.MatMulIntegerToFloat" integer::matmul_integer_to_float [];
    "com.microsoft.MatMulNBits" runtime::matmul_n_bits ["K", "N", "bits", "block_size"] ignored ["accuracy_level"];
    "com.microsoft.MultiHeadAttention" runtime::multi_head ["mask_filter_value", "num_heads", "scale", "unidirectional"];
    "com.microsoft.NhwcMaxPool" pool::max_pool_of_last
        ["auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "storage_order", "strides"];
    "com.microsoft.QAttention" runtime::quantized
        ["do_rotary", "mask_filter_value", "num_heads", "scale", "unidirectional"];
    "com.microsoft.QGemm" quantize::qgemm ["alpha", "transA", "transB"];
    "com.microsoft.QLinearAdd" quantize::qlinear_add [];
    "com.microsoft.QLinearAveragePool" quantize::qlinear_average
        ["auto_pad", "ceil_mode", "channels_last", "count_include_pad", "kernel_shape", "pads", "strides"];
    "com.microsoft.QLinearConcat" quantize::qlinear_concat ["axis"];
    "com.microsoft.QLinearConv" quantize::qlinear_conv
        ["auto_pad", "channels_last", "dilations", "group", "kernel_shape", "pads", "strides"];
    "com.microsoft.QLinearGlobalAveragePool" quantize::qlinear_global_average ["channels_last"];
    "com.microsoft.QLinearLeakyRelu" quantize::qlinear_leaky_relu ["alpha"];
    "com.microsoft.QLinearMul" quantize::qlinear_mul [];
    "com.microsoft.QLinearReduceMean" quantize::qlinear_reduce_mean ["axes", "keepdims"];
    "com.microsoft.QLinearSigmoid" quantize::qlinear_sigmoid [];
    "com.microsoft.QLinearSoftmax" quantize::qlinear_softmax ["axis", "opset"];
    "com.microsoft.QLinearWhere" quantize::qlinear_where [];
    "com.microsoft.QuantizeLinear" quantize::quantize_linear ["axis"];
    "com.microsoft.QuickGelu" unary::quick_gelu ["alpha"];
    "com.microsoft.RotaryEmbedding" runtime::rotary
        ["interleaved", "is_packed_batching", "num_heads", "rotary_embedding_dim", "scale"];
    "com.microsoft.SkipLayerNormalization" runtime::skip_layer ["epsilon"];
    "com.microsoft.SkipSimplifiedLayerNormalization" runtime::skip_rms ["epsilon"];
}

/// The operator with this name, which includes a domain other than the default one.
pub(super) fn find(op: &str) -> Option<&'static Operator> {
    REGISTRY.iter().find(|o| o.name == op)
}

/// All operators, by name.
pub(super) fn all() -> &'static [Operator] {
    REGISTRY
}

/// Names of the operators that can be imported.
pub(super) fn names() -> Vec<&'static str> {
    REGISTRY.iter().map(|o| o.name).collect()
}

/// Applies what takes channels behind the batch, if `channels_last` says that the node's data have them last.
fn in_layout(
    n: &mut NodeContext,
    data: ValueId,
    f: impl FnOnce(&mut NodeContext, ValueId) -> Result<ValueId, Reason>,
) -> Result<ValueId, Reason> {
    if n.int("channels_last").unwrap_or(0) == 0 { f(n, data) } else { channels_last(n, data, f) }
}

/// Applies what takes channels behind the batch to data that have them last.
fn channels_last(
    n: &mut NodeContext,
    data: ValueId,
    f: impl FnOnce(&mut NodeContext, ValueId) -> Result<ValueId, Reason>,
) -> Result<ValueId, Reason> {
    let rank = n.ty(data).rank();
    if rank < 3 {
        return Err(format!("its data must have 3 dimensions or more, found {}", n.ty(data)).into());
    }
    let mut perm: Vec<usize> = (0..rank).collect();
    perm[1..].rotate_right(1);
    let first = n.node("channels_first", Transpose { perm }, &[data])?;
    let v = f(n, first)?;
    let mut perm: Vec<usize> = (0..rank).collect();
    perm[1..].rotate_left(1);
    n.node("channels_last", Transpose { perm }, &[v])
}

/// A size attribute for height and width; data with only a width get `default` as height.
fn spatial(n: &NodeContext, name: &str, default: usize, line: bool) -> Result<[usize; 2], Reason> {
    if !line {
        return n.sizes::<2>(name, default);
    }
    Ok([default, n.sizes::<1>(name, default)?[0]])
}

/// The window over a volume that the attributes define; the kernel is `kernel_shape`, or this one.
fn window_3d(n: &NodeContext, kernel: Option<[usize; 3]>) -> Result<Sliding3, Reason> {
    let kernel = match kernel {
        Some(kernel) => kernel,
        None => n.sizes::<3>("kernel_shape", 1)?,
    };
    let (strides, dilations) = (n.sizes::<3>("strides", 1)?, n.sizes::<3>("dilations", 1)?);
    let pads = n.sizes::<6>("pads", 0)?;
    check_steps(&strides, &dilations, &pads)?;
    let padding = padding(n, [0; 4])?;
    let pads = Some(pads).filter(|_| matches!(padding, Padding::Given(_)));
    let round_up = n.int("ceil_mode").unwrap_or(0) != 0;
    Ok(Sliding3 { kernel, strides, dilations, pads, padding, round_up })
}

fn check_steps(strides: &[usize], dilations: &[usize], pads: &[usize]) -> Result<(), Reason> {
    if strides.contains(&0) || dilations.contains(&0) {
        return Err("its strides and dilations must be positive".into());
    }
    if strides.iter().chain(dilations).chain(pads).any(|&v| v > 1 << 31) {
        return Err("its strides, dilations and pads must be below 2^31".into());
    }
    Ok(())
}

/// Strides, dilations and explicit pads of a window, height first.
struct Steps {
    strides: [usize; 2],
    dilations: [usize; 2],
    /// Top, left, bottom, right.
    pads: [usize; 4],
}

fn steps(n: &NodeContext, line: bool) -> Result<Steps, Reason> {
    let (strides, dilations) = (spatial(n, "strides", 1, line)?, spatial(n, "dilations", 1, line)?);
    let pads = if line {
        let [before, after] = n.sizes::<2>("pads", 0)?;
        [0, before, 0, after]
    } else {
        n.sizes::<4>("pads", 0)?
    };
    check_steps(&strides, &dilations, &pads)?;
    Ok(Steps { strides, dilations, pads })
}

/// The padding that `auto_pad` asks for, or these pads.
fn padding(n: &NodeContext, pads: [usize; 4]) -> Result<Padding, Reason> {
    match n.word("auto_pad").unwrap_or_default().as_str() {
        "" | "NOTSET" => Ok(Padding::Given(pads)),
        "VALID" => Ok(Padding::Valid),
        "SAME_UPPER" => Ok(Padding::SameUpper),
        "SAME_LOWER" => Ok(Padding::SameLower),
        auto => Err(format!("unknown auto_pad `{auto}`; use NOTSET, VALID, SAME_UPPER or SAME_LOWER").into()),
    }
}

fn window(n: &NodeContext, data: &TensorType, kernel: [usize; 2], line: bool) -> Result<Window, Reason> {
    let Steps { strides, dilations, pads } = steps(n, line)?;
    let (padding, round_up) = (padding(n, pads)?, n.int("ceil_mode").unwrap_or(0) != 0);
    window::window(data, Sliding { kernel, strides, dilations, padding, round_up })
}
