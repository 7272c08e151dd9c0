//! Tensors of the graph as images.

use crate::graph::op::Layout;
use tilewright_hw::HwConfig;
use tilewright_hw::layout::Activation;
use tilewright_runtime::artifact::{Image, Packing};

/// Maps the elements of a dense tensor to images, channels, rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct View {
    /// Order of the dimensions in the dense tensor; `Nhwc` if both orders are the same.
    order: Layout,
    /// Images.
    pub n: usize,
    /// Channels.
    pub c: usize,
    /// Rows.
    pub h: usize,
    /// Columns.
    pub w: usize,
    /// Set if each pixel of the view is a window of the tensor's columns.
    windows: Option<ColumnWindows>,
}

/// Windows of columns that replace pixels: the columns of a window, with their channels, are the channels of the view.
///
/// Windows overlap in device memory. There a pixel has only the tensor's channels, without padding to a whole block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnWindows {
    /// Channels of the tensor.
    pub c: usize,
    /// Columns of the tensor.
    pub w: usize,
    /// Columns from one window to the next.
    pub step: usize,
    /// Columns of `fill` before and after each row in device memory.
    pub pads: [usize; 2],
    /// Value of padding.
    pub fill: i8,
}

impl View {
    /// The view of an image tensor of this shape; `None` if the shape is not an image.
    pub fn image(shape: &[usize], layout: Layout) -> Option<View> {
        let [n, ..] = *shape else { return None };
        let (c, [h, w]) = (*shape.get(layout.channel_axis())?, layout.spatial_axes());
        Some(View::new(layout, n, c, *shape.get(h)?, *shape.get(w)?))
    }

    /// A view with these sizes.
    pub fn new(order: Layout, n: usize, c: usize, h: usize, w: usize) -> View {
        let order = if c == 1 || h * w == 1 { Layout::Nhwc } else { order };
        View { order, n, c, h, w, windows: None }
    }

    /// The same tensor as `count` windows of `columns` columns, `step` columns apart. The first window begins `before`
    /// columns outside the image.
    pub fn in_windows(&self, [columns, step, before, count]: [usize; 4], fill: i8) -> View {
        let width = ((count - 1) * step + columns).max(before + self.w);
        let pads = [before, width - before - self.w];
        let windows = Some(ColumnWindows { c: self.c, w: self.w, step, pads, fill });
        View { c: columns * self.c, w: count, windows, ..*self }
    }

    /// Returns a text with the sizes and the order, but without the value of padding.
    pub fn without_values(&self) -> String {
        let View { order, n, c, h, w, windows } = self;
        let windows = windows.map_or_else(String::new, |v| format!(" windows {} {} {} {:?}", v.c, v.w, v.step, v.pads));
        format!("{order:?} {n}x{c}x{h}x{w}{windows}")
    }

    /// Whether windows of columns replace pixels.
    pub fn has_windows(&self) -> bool {
        self.windows.is_some()
    }

    /// The windows that replace pixels, if any.
    pub fn windows(&self) -> Option<ColumnWindows> {
        self.windows
    }

    /// A view in which the last dimension is channels and all others together are columns.
    pub fn rows(shape: &[usize]) -> View {
        let c = shape.last().copied().unwrap_or(1);
        View::new(Layout::Nhwc, 1, c, 1, shape.iter().rev().skip(1).product())
    }

    /// A view of a tensor whose elements are used independently, so that any view will do.
    pub fn any(shape: &[usize]) -> View {
        View::image(shape, Layout::Nhwc).filter(|_| shape.len() == 4).unwrap_or_else(|| View::rows(shape))
    }

    /// Matrices `[.., columns, channels]`, such as the first operand of a product of matrices.
    pub fn matrices(shape: &[usize]) -> View {
        let [outer @ .., columns, channels] = shape else { return View::rows(shape) };
        View::new(Layout::Nhwc, outer.iter().product(), *channels, 1, *columns)
    }

    /// Matrices `[.., channels, columns]`, such as the second operand of a product of matrices.
    pub fn transposed_matrices(shape: &[usize]) -> View {
        let [outer @ .., channels, columns] = shape else { return View::rows(shape) };
        View::new(Layout::Nchw, outer.iter().product(), *channels, 1, *columns)
    }

    /// The same order and number of images with other channels, rows and columns.
    pub fn resized(&self, c: usize, h: usize, w: usize) -> View {
        View::new(self.order, self.n, c, h, w)
    }

    /// A single pixel with the same channels.
    pub fn channels(&self) -> View {
        View::new(self.order, 1, self.c, 1, 1)
    }

    /// Whether this is the view of an image tensor of this shape.
    pub fn is_image(&self, shape: &[usize]) -> bool {
        View::image(shape, self.order) == Some(*self)
    }

    /// The order of the dense tensor's dimensions.
    pub fn order(&self) -> Layout {
        self.order
    }

    /// Index of an element within its image in the dense tensor.
    pub fn index(&self, c: usize, y: usize, x: usize) -> usize {
        match self.order {
            Layout::Nhwc => (y * self.w + x) * self.c + c,
            Layout::Nchw => (c * self.h + y) * self.w + x,
        }
    }

    /// Channel, row and column of an element of an image: the inverse of [`View::index`].
    pub fn position(&self, at: usize) -> [usize; 3] {
        match self.order {
            Layout::Nhwc => [at % self.c, at / self.c / self.w, at / self.c % self.w],
            Layout::Nchw => [at / (self.h * self.w), at / self.w % self.h, at % self.w],
        }
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.n * self.c * self.h * self.w
    }

    /// The layout in device memory: in blocks of channels, or without blocks if the view has windows.
    pub fn layout(&self, config: &HwConfig) -> Activation {
        if self.windows.is_some() {
            return self.host_image(config).layout();
        }
        Activation::new(config, self.n, self.c, self.h, self.w)
    }

    /// The conversion that the runtime does at the border of a region.
    pub fn packing(&self, config: &HwConfig) -> Packing {
        let image = self.host_image(config);
        match self.order {
            Layout::Nhwc => Packing::Nhwc(image),
            Layout::Nchw => Packing::Nchw(image),
        }
    }

    fn host_image(&self, config: &HwConfig) -> Image {
        let View { n, c, h, w, windows, .. } = *self;
        match windows {
            Some(x) => Image { n, c: x.c, h, w: x.w, block: x.c, fill: x.fill, pads: x.pads },
            None => Image { n, c, h, w, block: config.block() as usize, fill: 0, pads: [0; 2] },
        }
    }
}
