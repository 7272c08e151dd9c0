//! Tensors of the graph as images.

use crate::graph::op::Layout;
use tilewright_hw::HwConfig;
use tilewright_hw::layout::Activation;
use tilewright_runtime::artifact::{Image, Packing};

/// How the elements of a dense tensor are images, channels, rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct View {
    /// Order of the dimensions in the dense tensor; `Nhwc` where both are the same.
    order: Layout,
    /// Images.
    pub n: usize,
    /// Channels.
    pub c: usize,
    /// Rows.
    pub h: usize,
    /// Columns.
    pub w: usize,
    /// Where its pixels are windows of the tensor's columns.
    windows: Option<ColumnWindows>,
}

/// Windows of columns that take the place of pixels: those of a window, with their channels, are the view's channels. They
/// overlap in device memory, where a pixel has the tensor's channels alone, without a block to fill up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnWindows {
    /// Channels of the tensor.
    pub c: usize,
    /// Columns of the tensor.
    pub w: usize,
    /// Columns from one window to the next.
    pub step: usize,
    /// Columns of `fill` before and behind each row in device memory.
    pub pads: [usize; 2],
    /// Value of padding.
    pub fill: i8,
}

impl View {
    /// The view of an image tensor's shape.
    pub fn image(shape: &[usize], layout: Layout) -> Option<View> {
        let [n, ..] = *shape else { return None };
        let (c, [h, w]) = (*shape.get(layout.channel_axis())?, layout.spatial_axes());
        Some(View::new(layout, n, c, *shape.get(h)?, *shape.get(w)?))
    }

    /// A view of these sizes.
    pub fn new(order: Layout, n: usize, c: usize, h: usize, w: usize) -> View {
        let order = if c == 1 || h * w == 1 { Layout::Nhwc } else { order };
        View { order, n, c, h, w, windows: None }
    }

    /// The same tensor as `count` windows of `columns` columns; the first begins `before` columns outside.
    pub fn in_windows(&self, [columns, step, before, count]: [usize; 4], fill: i8) -> View {
        let width = ((count - 1) * step + columns).max(before + self.w);
        let pads = [before, width - before - self.w];
        let windows = Some(ColumnWindows { c: self.c, w: self.w, step, pads, fill });
        View { c: columns * self.c, w: count, windows, ..*self }
    }

    /// Whether windows of columns take the place of pixels.
    pub fn has_windows(&self) -> bool {
        self.windows.is_some()
    }

    /// The windows that take the place of pixels, if any do.
    pub fn windows(&self) -> Option<ColumnWindows> {
        self.windows
    }

    /// A view in which the last dimension holds channels and all others are columns.
    pub fn rows(shape: &[usize]) -> View {
        let c = shape.last().copied().unwrap_or(1);
        View::new(Layout::Nhwc, 1, c, 1, shape.iter().rev().skip(1).product())
    }

    /// Some view of a tensor that is only read element by element.
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

    /// Another number of channels and another size of image, in the same order.
    pub fn resized(&self, c: usize, h: usize, w: usize) -> View {
        View::new(self.order, self.n, c, h, w)
    }

    /// One pixel of the same channels.
    pub fn channels(&self) -> View {
        View::new(self.order, 1, self.c, 1, 1)
    }

    /// Whether it is the view of an image tensor of this shape, in its order.
    pub fn is_image(&self, shape: &[usize]) -> bool {
        View::image(shape, self.order) == Some(*self)
    }

    /// The order of the dense tensor's dimensions.
    pub fn order(&self) -> Layout {
        self.order
    }

    /// DeviceTensor of an element among those of its image in the dense tensor.
    pub fn index(&self, c: usize, y: usize, x: usize) -> usize {
        match self.order {
            Layout::Nhwc => (y * self.w + x) * self.c + c,
            Layout::Nchw => (c * self.h + y) * self.w + x,
        }
    }

    /// Channel, row and column of an element of an image: [`View::index`] backwards.
    pub fn position(&self, at: usize) -> [usize; 3] {
        match self.order {
            Layout::Nhwc => [at % self.c, at / self.c / self.w, at / self.c % self.w],
            Layout::Nchw => [at / (self.h * self.w), at / self.w % self.h, at % self.w],
        }
    }

    /// Elements.
    pub fn elements(&self) -> usize {
        self.n * self.c * self.h * self.w
    }

    /// The form in device memory: blocked, or without blocks where windows are loaded.
    pub fn layout(&self, config: &HwConfig) -> Activation {
        if self.windows.is_some() {
            return self.host_image(config).layout();
        }
        Activation::new(config, self.n, self.c, self.h, self.w)
    }

    /// What the runtime has to do at a region's border.
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
