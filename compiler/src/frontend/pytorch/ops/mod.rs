//! The registry: operators that can be imported, each with its import function.

mod activation;
mod arithmetic;
mod attention;
mod control;
mod convolution;
mod create;
mod index;
mod movement;
mod norm;
mod pool;
mod product;
mod quantize;
mod recurrent;
mod reduce;
mod resize;
mod shape;
mod sort;
mod symbol;
mod unary;

use super::context::Value;
use super::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::graph::ValueId;

type Import = fn(&mut NodeContext) -> Result<Value, Reason>;

/// An operator that can be imported.
pub(super) struct Operator {
    /// Its name without the overload, such as `aten.add`.
    pub name: &'static str,
    pub overloads: &'static [&'static str],
    pub import: Import,
    /// True if its results share the elements of its first argument.
    pub is_view: bool,
}

macro_rules! registry {
    ($($name:literal $import:path [$($overload:literal),* $(,)?] $(as $view:ident)?;)*) => {
        const REGISTRY: &[Operator] = &[$(Operator {
            name: $name,
            overloads: &[$($overload),*],
            import: $import,
            is_view: registry!(@view $($view)?),
        }),*];
    };
    (@view view) => { true };
    (@view) => { false };
}

registry! {
    "_operator.add" symbol::add [];
    "_operator.and_" symbol::and [];
    "_operator.eq" symbol::equal [];
    "_operator.floordiv" symbol::floor_divide [];
    "_operator.ge" symbol::greater_equal [];
    "_operator.gt" symbol::greater [];
    "_operator.le" symbol::less_equal [];
    "_operator.lt" symbol::less [];
    "_operator.mod" symbol::remainder [];
    "_operator.mul" symbol::multiply [];
    "_operator.ne" symbol::not_equal [];
    "_operator.neg" symbol::negate [];
    "_operator.sub" symbol::subtract [];
    "_operator.truediv" symbol::divide [];
    "aten.__and__" arithmetic::and ["Scalar", "Tensor"];
    "aten.__lshift__" arithmetic::shift_left ["Scalar", "Tensor"];
    "aten.__or__" arithmetic::or ["Scalar", "Tensor"];
    "aten.__rshift__" arithmetic::shift_right ["Scalar", "Tensor"];
    "aten.__xor__" arithmetic::xor ["Scalar", "Tensor"];
    "aten._adaptive_avg_pool2d" pool::adaptive_average ["default"];
    "aten._adaptive_avg_pool3d" pool::adaptive_average ["default"];
    "aten._assert_async" symbol::nothing ["default", "msg"];
    "aten._assert_scalar" symbol::nothing ["default"];
    "aten._assert_tensor_metadata" symbol::nothing ["default"];
    "aten._log_softmax" activation::log_softmax ["default"];
    "aten._native_batch_norm_legit" norm::batch_legit ["no_stats"];
    "aten._native_batch_norm_legit_no_training" norm::batch_no_training ["default"];
    "aten._safe_softmax" activation::safe_softmax ["default"];
    "aten._scaled_dot_product_flash_attention_for_cpu" attention::flash ["default"];
    "aten._softmax" activation::softmax ["default"];
    "aten._to_copy" shape::to ["default"];
    "aten._unsafe_index" index::index ["Tensor"];
    "aten._unsafe_view" shape::view ["default"];
    "aten._upsample_bicubic2d_aa" resize::bicubic_smooth ["default", "vec"];
    "aten._upsample_bilinear2d_aa" resize::linear_smooth ["default", "vec"];
    "aten._upsample_nearest_exact1d" resize::nearest_exact ["default", "vec"];
    "aten._upsample_nearest_exact2d" resize::nearest_exact ["default", "vec"];
    "aten._upsample_nearest_exact3d" resize::nearest_exact ["default", "vec"];
    "aten._weight_norm" norm::weight ["default"];
    "aten.abs" unary::abs ["default"];
    "aten.acos" unary::acos ["default"];
    "aten.acosh" unary::acosh ["default"];
    "aten.adaptive_avg_pool1d" pool::adaptive_average ["default"];
    "aten.adaptive_avg_pool2d" pool::adaptive_average ["default"];
    "aten.adaptive_avg_pool3d" pool::adaptive_average ["default"];
    "aten.adaptive_max_pool1d" pool::adaptive_max ["default"];
    "aten.adaptive_max_pool2d" pool::adaptive_max ["default"];
    "aten.adaptive_max_pool3d" pool::adaptive_max ["default"];
    "aten.add" arithmetic::add ["Scalar", "Tensor"];
    "aten.addbmm" product::add_summed_batches ["default"];
    "aten.addcdiv" arithmetic::add_quotient ["default"];
    "aten.addcmul" arithmetic::add_product ["default"];
    "aten.addmm" product::add_matrices ["default"];
    "aten.addmv" product::add_matrices ["default"];
    "aten.affine_grid_generator" resize::affine_grid ["default"];
    "aten.alias" shape::same ["default"] as view;
    "aten.alias_copy" shape::same ["default"];
    "aten.all" reduce::all ["default", "dim", "dims"];
    "aten.alpha_dropout" shape::dropout ["default"] as view;
    "aten.amax" reduce::greatest ["default"];
    "aten.amin" reduce::least ["default"];
    "aten.aminmax" reduce::extremes ["default"];
    "aten.any" reduce::any ["default", "dim", "dims"];
    "aten.arange" create::range ["default", "start", "start_step"];
    "aten.argmax" reduce::arg_greatest ["default"];
    "aten.argmin" reduce::arg_least ["default"];
    "aten.argsort" sort::arg_sort ["default", "stable"];
    "aten.as_strided" shape::strided ["default"] as view;
    "aten.asin" unary::asin ["default"];
    "aten.asinh" unary::asinh ["default"];
    "aten.atan" unary::atan ["default"];
    "aten.atan2" arithmetic::atan2 ["default"];
    "aten.atanh" unary::atanh ["default"];
    "aten.avg_pool1d" pool::average ["default"];
    "aten.avg_pool2d" pool::average ["default"];
    "aten.avg_pool3d" pool::average ["default"];
    "aten.baddbmm" product::add_batches ["default"];
    "aten.batch_norm" norm::batch ["default"];
    "aten.bilinear" product::bilinear ["default"];
    "aten.bitwise_and" arithmetic::and ["Scalar", "Tensor"];
    "aten.bitwise_left_shift" arithmetic::shift_left ["Tensor", "Tensor_Scalar"];
    "aten.bitwise_not" unary::not ["default"];
    "aten.bitwise_or" arithmetic::or ["Scalar", "Tensor"];
    "aten.bitwise_right_shift" arithmetic::shift_right ["Tensor", "Tensor_Scalar"];
    "aten.bitwise_xor" arithmetic::xor ["Scalar", "Tensor"];
    "aten.bmm" product::matrices ["default"];
    "aten.broadcast_tensors" movement::broadcast_tensors ["default"];
    "aten.broadcast_to" shape::expand ["default"] as view;
    "aten.cat" movement::concatenate ["default"];
    "aten.ceil" unary::ceil ["default"];
    "aten.celu" activation::celu ["default"];
    "aten.channel_shuffle" movement::channel_shuffle ["default"];
    "aten.chunk" shape::chunk ["default"] as view;
    "aten.clamp" arithmetic::clamp ["Tensor", "default"];
    "aten.clamp_max" arithmetic::clamp ["Tensor", "default"];
    "aten.clamp_min" arithmetic::clamp ["Tensor", "default"];
    "aten.clip" arithmetic::clamp ["Tensor", "default"];
    "aten.clone" shape::same ["default"];
    "aten.col2im" resize::columns_to_image ["default"];
    "aten.constant_pad_nd" resize::pad ["default"];
    "aten.contiguous" shape::same ["default"] as view;
    "aten.conv1d" convolution::convolution ["default", "padding"];
    "aten.conv2d" convolution::convolution ["default", "padding"];
    "aten.conv3d" convolution::convolution ["default", "padding"];
    "aten.conv_transpose1d" convolution::transposed ["default"];
    "aten.conv_transpose2d" convolution::transposed ["input"];
    "aten.conv_transpose3d" convolution::transposed ["input"];
    "aten.convolution" convolution::any ["default"];
    "aten.copy" index::copy ["default"];
    "aten.copysign" arithmetic::copy_sign ["Scalar", "Tensor"];
    "aten.cos" unary::cos ["default"];
    "aten.cosh" unary::cosh ["default"];
    "aten.cosine_similarity" norm::cosine_similarity ["default"];
    "aten.count_nonzero" reduce::count_nonzero ["default", "dim_IntList"];
    "aten.cumprod" reduce::cumulative_product ["default"];
    "aten.cumsum" reduce::cumulative_sum ["default"];
    "aten.deg2rad" unary::deg2rad ["default"];
    "aten.detach" shape::same ["default"] as view;
    "aten.detach_copy" shape::same ["default"];
    "aten.diagonal" shape::diagonal ["default"] as view;
    "aten.diff" reduce::difference ["default"];
    "aten.div" arithmetic::divide ["Scalar", "Scalar_mode", "Tensor", "Tensor_mode"];
    "aten.divide" arithmetic::divide ["Scalar", "Scalar_mode", "Tensor", "Tensor_mode"];
    "aten.dot" product::dot ["default"];
    "aten.dropout" shape::dropout ["default"] as view;
    "aten.einsum" product::einsum ["default"];
    "aten.elu" activation::elu ["default"];
    "aten.embedding" index::embedding ["default"];
    "aten.empty" create::zeros ["memory_format"];
    "aten.empty_like" create::zeros_like ["default"];
    "aten.empty_permuted" create::zeros ["default"];
    "aten.eq" arithmetic::equal ["Scalar", "Tensor"];
    "aten.erf" unary::erf ["default"];
    "aten.erfc" unary::erfc ["default"];
    "aten.exp" unary::exp ["default"];
    "aten.exp2" unary::exp2 ["default"];
    "aten.expand" shape::expand ["default"] as view;
    "aten.expand_as" shape::expand_as ["default"] as view;
    "aten.expm1" unary::expm1 ["default"];
    "aten.eye" create::identity ["default", "m"];
    "aten.fake_quantize_per_channel_affine" quantize::fake_per_channel ["default"];
    "aten.fake_quantize_per_channel_affine_cachemask" quantize::fake_per_channel ["default"];
    "aten.fake_quantize_per_tensor_affine" quantize::fake ["default", "tensor_qparams"];
    "aten.fake_quantize_per_tensor_affine_cachemask" quantize::fake ["default"];
    "aten.feature_dropout" shape::dropout ["default"] as view;
    "aten.fill" create::fill ["Scalar", "Tensor"];
    "aten.flatten" shape::flatten ["using_ints"] as view;
    "aten.flip" movement::flip ["default"];
    "aten.fliplr" movement::flip_columns ["default"];
    "aten.flipud" movement::flip_rows ["default"];
    "aten.floor" unary::floor ["default"];
    "aten.floor_divide" arithmetic::floor_divide ["Scalar", "default"];
    "aten.fmax" arithmetic::maximum_number ["default"];
    "aten.fmin" arithmetic::minimum_number ["default"];
    "aten.fmod" arithmetic::fmod ["Scalar", "Tensor"];
    "aten.frac" unary::fraction ["default"];
    "aten.full" create::full ["default"];
    "aten.full_like" create::full_like ["default"];
    "aten.gather" index::gather ["default"];
    "aten.ge" arithmetic::greater_equal ["Scalar", "Tensor"];
    "aten.gelu" activation::gelu ["default"];
    "aten.glu" activation::gated ["default"];
    "aten.grid_sampler" resize::grid_sample ["default"];
    "aten.grid_sampler_2d" resize::grid_sample ["default"];
    "aten.grid_sampler_3d" resize::grid_sample ["default"];
    "aten.group_norm" norm::group ["default"];
    "aten.gru" recurrent::gru ["input"];
    "aten.gt" arithmetic::greater ["Scalar", "Tensor"];
    "aten.hardshrink" activation::hard_shrink ["default"];
    "aten.hardsigmoid" activation::hard_sigmoid ["default"];
    "aten.hardswish" activation::hard_swish ["default"];
    "aten.hardtanh" activation::hard_tanh ["default"];
    "aten.heaviside" arithmetic::step ["default"];
    "aten.hstack" movement::stack_columns ["default"];
    "aten.hypot" arithmetic::hypotenuse ["default"];
    "aten.im2col" resize::image_to_columns ["default"];
    "aten.index" index::index ["Tensor"];
    "aten.index_add" index::index_add ["default"];
    "aten.index_copy" index::index_copy ["default"];
    "aten.index_fill" index::index_fill ["int_Scalar", "int_Tensor"];
    "aten.index_put" index::index_put ["default"];
    "aten.index_select" index::index_select ["default"];
    "aten.inner" product::inner ["default"];
    "aten.instance_norm" norm::instance ["default"];
    "aten.isclose" arithmetic::is_close ["default"];
    "aten.isfinite" unary::is_finite ["default"];
    "aten.isinf" unary::is_infinite ["default"];
    "aten.isnan" unary::is_nan ["default"];
    "aten.layer_norm" norm::layer ["default"];
    "aten.ldexp" arithmetic::times_power ["Tensor"];
    "aten.le" arithmetic::less_equal ["Scalar", "Tensor"];
    "aten.leaky_relu" activation::leaky_relu ["default"];
    "aten.lerp" arithmetic::interpolate ["Scalar", "Tensor"];
    "aten.lift_fresh" shape::same ["default"] as view;
    "aten.lift_fresh_copy" shape::same ["default"];
    "aten.linalg_matmul" product::matmul ["default"];
    "aten.linalg_vector_norm" reduce::norm ["default"];
    "aten.linear" product::linear ["default"];
    "aten.linspace" create::line ["default"];
    "aten.log" unary::log ["default"];
    "aten.log10" unary::log10 ["default"];
    "aten.log1p" unary::log1p ["default"];
    "aten.log2" unary::log2 ["default"];
    "aten.log_sigmoid" activation::log_sigmoid ["default"];
    "aten.log_softmax" activation::log_softmax ["int"];
    "aten.logaddexp" arithmetic::log_add_exp ["default"];
    "aten.logical_and" arithmetic::logical_and ["default"];
    "aten.logical_not" unary::logical_not ["default"];
    "aten.logical_or" arithmetic::logical_or ["default"];
    "aten.logical_xor" arithmetic::logical_xor ["default"];
    "aten.logit" activation::logit ["default"];
    "aten.logsumexp" reduce::log_sum_exp ["default"];
    "aten.lstm" recurrent::lstm ["input"];
    "aten.lt" arithmetic::less ["Scalar", "Tensor"];
    "aten.mT" shape::transpose_matrices ["default"] as view;
    "aten.masked_fill" index::masked_fill ["Scalar", "Tensor"];
    "aten.matmul" product::matmul ["default"];
    "aten.max" reduce::max ["default", "dim", "other"];
    "aten.max_pool1d" pool::max ["default"];
    "aten.max_pool2d" pool::max ["default"];
    "aten.max_pool2d_with_indices" pool::max_with_indices ["default"];
    "aten.max_pool3d" pool::max ["default"];
    "aten.max_pool3d_with_indices" pool::max_with_indices ["default"];
    "aten.maximum" arithmetic::maximum ["default"];
    "aten.mean" reduce::mean ["default", "dim"];
    "aten.meshgrid" movement::mesh ["default", "indexing"];
    "aten.min" reduce::min ["default", "dim", "other"];
    "aten.minimum" arithmetic::minimum ["default"];
    "aten.mish" activation::mish ["default"];
    "aten.mm" product::matrices ["default"];
    "aten.movedim" shape::move_dims ["int", "intlist"] as view;
    "aten.mse_loss" norm::squared_error ["default"];
    "aten.msort" sort::sort_first ["default"];
    "aten.mul" arithmetic::multiply ["Scalar", "Tensor"];
    "aten.multiply" arithmetic::multiply ["Scalar", "Tensor"];
    "aten.mv" product::matmul_vector ["default"];
    "aten.nan_to_num" unary::nan_to_num ["default"];
    "aten.narrow" shape::narrow ["default"] as view;
    "aten.native_dropout" shape::dropout_native ["default"];
    "aten.native_group_norm" norm::group_native ["default"];
    "aten.native_layer_norm" norm::layer_native ["default"];
    "aten.ne" arithmetic::not_equal ["Scalar", "Tensor"];
    "aten.neg" unary::neg ["default"];
    "aten.new_empty" create::zeros ["default"];
    "aten.new_full" create::full ["default"];
    "aten.new_ones" create::ones ["default"];
    "aten.new_zeros" create::zeros ["default"];
    "aten.one_hot" index::one_hot ["default"];
    "aten.ones" create::ones ["default"];
    "aten.ones_like" create::ones_like ["default"];
    "aten.outer" product::outer ["default"];
    "aten.pad" resize::pad ["default"];
    "aten.permute" shape::permute ["default"] as view;
    "aten.permute_copy" shape::permute ["default"];
    "aten.pixel_shuffle" movement::pixel_shuffle ["default"];
    "aten.pixel_unshuffle" movement::pixel_unshuffle ["default"];
    "aten.positive" shape::same ["default"] as view;
    "aten.pow" arithmetic::power ["Scalar", "Tensor_Scalar", "Tensor_Tensor"];
    "aten.prelu" activation::prelu ["default"];
    "aten.prod" reduce::product ["default", "dim_int"];
    "aten.rad2deg" unary::rad2deg ["default"];
    "aten.ravel" shape::flatten ["default"] as view;
    "aten.reciprocal" unary::reciprocal ["default"];
    "aten.reflection_pad1d" resize::pad_reflect ["default"];
    "aten.reflection_pad2d" resize::pad_reflect ["default"];
    "aten.reflection_pad3d" resize::pad_reflect ["default"];
    "aten.relu" activation::relu ["default"];
    "aten.relu6" activation::relu6 ["default"];
    "aten.remainder" arithmetic::remainder ["Scalar", "Tensor"];
    "aten.repeat" movement::repeat ["default"];
    "aten.repeat_interleave" movement::repeat_interleave ["self_int"];
    "aten.replication_pad1d" resize::pad_replicate ["default"];
    "aten.replication_pad2d" resize::pad_replicate ["default"];
    "aten.replication_pad3d" resize::pad_replicate ["default"];
    "aten.reshape" shape::view ["default"] as view;
    "aten.reshape_as" shape::view_as ["default"] as view;
    "aten.resolve_conj" shape::same ["default"] as view;
    "aten.rms_norm" norm::rms ["default"];
    "aten.rnn_relu" recurrent::rnn_relu ["input"];
    "aten.rnn_tanh" recurrent::rnn_tanh ["input"];
    "aten.roll" movement::roll ["default"];
    "aten.round" unary::round ["decimals", "default"];
    "aten.rsqrt" unary::rsqrt ["default"];
    "aten.rsub" arithmetic::subtract_from ["Scalar", "Tensor"];
    "aten.scalar_tensor" create::scalar ["default"];
    "aten.scaled_dot_product_attention" attention::attention ["default"];
    "aten.scatter" index::scatter ["reduce", "src", "value", "value_reduce"];
    "aten.scatter_add" index::scatter_add ["default"];
    "aten.scatter_reduce" index::scatter_reduce ["two"];
    "aten.select" shape::select ["int"] as view;
    "aten.select_copy" shape::select ["int"];
    "aten.select_scatter" index::select_scatter ["default"];
    "aten.selu" activation::selu ["default"];
    "aten.sgn" unary::sign ["default"];
    "aten.sigmoid" unary::sigmoid ["default"];
    "aten.sign" unary::sign ["default"];
    "aten.signbit" unary::sign_bit ["default"];
    "aten.silu" activation::silu ["default"];
    "aten.sin" unary::sin ["default"];
    "aten.sinh" unary::sinh ["default"];
    "aten.slice" shape::slice ["Tensor"] as view;
    "aten.slice_copy" shape::slice ["Tensor"];
    "aten.slice_scatter" index::slice_scatter ["default"];
    "aten.softmax" activation::softmax ["int"];
    "aten.softplus" activation::softplus ["default"];
    "aten.softshrink" activation::soft_shrink ["default"];
    "aten.sort" sort::sort ["default", "stable"];
    "aten.split" shape::split ["Tensor", "default"] as view;
    "aten.split_copy" shape::split ["Tensor"];
    "aten.split_with_sizes" shape::split_with_sizes ["default"] as view;
    "aten.split_with_sizes_copy" shape::split_with_sizes ["default"];
    "aten.sqrt" unary::sqrt ["default"];
    "aten.square" unary::square ["default"];
    "aten.squeeze" shape::squeeze ["default", "dim", "dims"] as view;
    "aten.squeeze_copy" shape::squeeze ["default", "dim", "dims"];
    "aten.stack" movement::stack ["default"];
    "aten.std" reduce::deviation ["correction", "default", "dim"];
    "aten.std_mean" reduce::deviation_mean ["correction", "default", "dim"];
    "aten.sub" arithmetic::subtract ["Scalar", "Tensor"];
    "aten.subtract" arithmetic::subtract ["Scalar", "Tensor"];
    "aten.sum" reduce::sum ["default", "dim_IntList"];
    "aten.swapaxes" shape::transpose ["default"] as view;
    "aten.swapdims" shape::transpose ["default"] as view;
    "aten.sym_constrain_range" symbol::nothing ["default"];
    "aten.sym_constrain_range_for_size" symbol::nothing ["default"];
    "aten.sym_numel" symbol::count ["default"];
    "aten.sym_size" symbol::size ["int"];
    "aten.t" shape::transpose_matrices ["default"] as view;
    "aten.take" index::take ["default"];
    "aten.take_along_dim" index::take_along_dim ["default"];
    "aten.tan" unary::tan ["default"];
    "aten.tanh" unary::tanh ["default"];
    "aten.tensordot" product::tensordot ["default"];
    "aten.threshold" activation::threshold ["default"];
    "aten.tile" movement::repeat ["default"];
    "aten.to" shape::to ["device", "dtype", "dtype_layout", "other"] as view;
    "aten.topk" sort::top_k ["default"];
    "aten.transpose" shape::transpose ["default", "int"] as view;
    "aten.transpose_copy" shape::transpose ["int"];
    "aten.tril" index::lower_triangle ["default"];
    "aten.tril_indices" create::lower_indices ["default"];
    "aten.triu" index::upper_triangle ["default"];
    "aten.true_divide" arithmetic::divide ["Scalar", "Tensor"];
    "aten.trunc" unary::truncate ["default"];
    "aten.type_as" shape::to ["default"] as view;
    "aten.unbind" shape::unbind ["int"] as view;
    "aten.unbind_copy" shape::unbind ["int"];
    "aten.unflatten" shape::unflatten ["int"] as view;
    "aten.unfold" shape::unfold ["default"] as view;
    "aten.unsafe_chunk" shape::chunk ["default"];
    "aten.unsafe_split" shape::split ["Tensor"];
    "aten.unsqueeze" shape::unsqueeze ["default"] as view;
    "aten.unsqueeze_copy" shape::unsqueeze ["default"];
    "aten.upsample_bicubic2d" resize::bicubic ["default", "vec"];
    "aten.upsample_bilinear2d" resize::linear ["default", "vec"];
    "aten.upsample_linear1d" resize::linear ["default", "vec"];
    "aten.upsample_nearest1d" resize::nearest ["default", "vec"];
    "aten.upsample_nearest2d" resize::nearest ["default", "vec"];
    "aten.upsample_nearest3d" resize::nearest ["default", "vec"];
    "aten.upsample_trilinear3d" resize::linear ["default", "vec"];
    "aten.var" reduce::variance ["correction", "default", "dim"];
    "aten.var_mean" reduce::variance_mean ["correction", "default", "dim"];
    "aten.view" shape::view ["default", "dtype"] as view;
    "aten.view_as" shape::view_as ["default"] as view;
    "aten.view_copy" shape::view ["default"];
    "aten.vstack" movement::stack_rows ["default"];
    "aten.where" arithmetic::choose ["Scalar", "ScalarOther", "ScalarSelf", "self"];
    "aten.xlogy" arithmetic::x_log_y ["Scalar_Other", "Scalar_Self", "Tensor"];
    "aten.zero" create::zeros_like ["default"];
    "aten.zeros" create::zeros ["default"];
    "aten.zeros_like" create::zeros_like ["default"];
    "higher_order.cond" control::branch [];
    "higher_order.while_loop" control::repeated [];
    "math.ceil" symbol::ceil [];
    "math.floor" symbol::floor [];
    "math.trunc" symbol::truncate [];
    "quantized_decomposed.choose_qparams" quantize::choose ["tensor"];
    "quantized_decomposed.choose_qparams_symmetric" quantize::choose_symmetric ["tensor"];
    "quantized_decomposed.dequantize_per_channel" quantize::dequantize_per_channel ["default"];
    "quantized_decomposed.dequantize_per_tensor" quantize::dequantize ["default", "tensor"];
    "quantized_decomposed.quantize_per_channel" quantize::quantize_per_channel ["default"];
    "quantized_decomposed.quantize_per_tensor" quantize::quantize ["default", "tensor"];
    "torch.sym_float" symbol::float [];
    "torch.sym_int" symbol::truncate [];
    "torch.sym_max" symbol::greatest [];
    "torch.sym_min" symbol::least [];
    "torch.sym_not" symbol::not [];
}

/// The data with a batch of 1 in front if they have one dimension less than `rank`, and whether it was added.
fn with_batch(n: &mut NodeContext, v: ValueId, rank: usize) -> Result<(ValueId, bool), Reason> {
    let mut shape = n.shape(v)?;
    let is_single = shape.len() + 1 == rank;
    if is_single {
        shape.insert(0, 1);
    }
    Ok((n.reshape("batch", v, &shape)?, is_single))
}

/// The data without the batch that [`with_batch`] added.
fn without_batch(n: &mut NodeContext, v: ValueId, is_single: bool) -> Result<ValueId, Reason> {
    if !is_single {
        return Ok(v);
    }
    let mut shape = n.shape(v)?;
    shape.remove(0);
    n.reshape("single", v, &shape)
}

/// An operator that was found, and whether it changes its first argument.
pub(super) struct Found {
    pub operator: &'static Operator,
    pub in_place: bool,
}

/// A target's name for messages.
pub(super) fn short_name(target: &str) -> &str {
    target.strip_prefix("torch.ops.").unwrap_or(target)
}

/// The operator of a target, such as `torch.ops.aten.add_.Tensor`.
pub(super) fn find(target: &str) -> Option<Found> {
    let by_name = |name: &str| {
        let at = REGISTRY.binary_search_by(|o| o.name.cmp(name)).ok()?;
        Some(&REGISTRY[at])
    };
    let Some(full) = target.strip_prefix("torch.ops.") else {
        return by_name(target).map(|operator| Found { operator, in_place: false });
    };
    if full.starts_with("higher_order.") {
        return by_name(full).map(|operator| Found { operator, in_place: false });
    }
    let (name, overload) = full.rsplit_once('.')?;
    let plain = name.strip_suffix('_').filter(|plain| !plain.ends_with('_'));
    let operator = by_name(plain.unwrap_or(name))?;
    let known = operator.overloads.contains(&overload);
    known.then_some(Found { operator, in_place: plain.is_some() })
}

/// Whether a target changes an operand, as far as its name tells.
pub(super) fn changes(target: &str) -> bool {
    let name = short_name(target).rsplit_once('.').map_or("", |(name, _)| name);
    name.ends_with('_') && !name.ends_with("__")
}

/// Names of the operators that can be imported.
pub(super) fn names() -> impl Iterator<Item = &'static str> + Clone {
    REGISTRY.iter().map(|o| o.name)
}

/// Names of the operators that can be imported, with their overloads.
pub(super) fn described() -> Vec<[String; 2]> {
    REGISTRY.iter().map(|o| [o.name.to_owned(), o.overloads.join(", ")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_in_order() {
        let all: Vec<&str> = names().collect();
        assert!(all.windows(2).all(|w| w[0] < w[1]), "{:?}", all.windows(2).find(|w| w[0] >= w[1]));
    }

    #[test]
    fn operators_are_found_by_their_targets() {
        let found = |target| find(target).map(|found| (found.operator.name, found.in_place));
        assert_eq!(found("torch.ops.aten.add.Tensor"), Some(("aten.add", false)));
        assert_eq!(found("torch.ops.aten.add_.Tensor"), Some(("aten.add", true)));
        assert_eq!(found("torch.ops.aten.__and__.Tensor"), Some(("aten.__and__", false)));
        assert_eq!(found("torch.ops.aten.copy_.default"), Some(("aten.copy", true)));
        assert_eq!(found("_operator.floordiv"), Some(("_operator.floordiv", false)));
        assert_eq!(found("torch.ops.aten.add.out"), None);
        assert_eq!(found("torch.ops.mine.add.Tensor"), None);
    }
}
