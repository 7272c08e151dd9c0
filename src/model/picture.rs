//! Pictures as inputs: decodes, crops, scales and normalizes them for a model.

use std::io::Cursor;
use std::path::Path;

use fast_image_resize::images::Image;
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use image::metadata::Orientation;
use image::{DynamicImage, GenericImageView, ImageDecoder, ImageError, ImageReader, Limits};
use tilewright_runtime::artifact::{Edge, Normalization, ValueInfo};
use tilewright_runtime::tensor::{DType, Tensor, shape_text};

/// Extensions of picture files that can be read.
const ENDINGS: &[&str] = &["png", "jpg", "jpeg", "webp", "bmp", "gif"];
/// Extensions of other picture files.
const UNREAD: &[&str] = &[
    "avif", "dng", "exr", "heic", "heif", "ico", "jp2", "jxl", "pbm", "pgm", "ppm", "psd", "svg", "tga", "tif", "tiff",
];

/// Why a picture cannot become an input.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file cannot be decoded.
    #[error("{file} is not a picture that can be read: {source}; give a PNG, JPEG, WebP, BMP or GIF file")]
    Decode {
        /// The file.
        file: String,
        /// The decoder's error.
        source: ImageError,
    },
    /// A picture in an unsupported format.
    #[error("{file} is a picture in an unsupported format; convert it to PNG, JPEG, WebP, BMP or GIF")]
    Format {
        /// The file.
        file: String,
    },
    /// The model's input is not a picture.
    #[error("input {name} is {ty}, which is not a picture: {why}")]
    Shape {
        /// The input.
        name: String,
        /// Its type and shape.
        ty: String,
        /// What a picture input needs.
        why: String,
    },
    /// The normalization is unknown.
    #[error(
        "input {name} is {dtype}, and the model file does not say how to normalize pixels; give for example \
         --preprocess mean=127.5,scale=127.5 for values from -1 to 1, or mean=0,scale=255 for 0 to 1"
    )]
    Normalization {
        /// The input.
        name: String,
        /// Its element type.
        dtype: DType,
    },
}

/// How a picture is fitted to the input's size.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fit {
    /// The center crop with the input's proportions; the number is its fraction of the largest possible crop.
    Crop(f64),
    /// The whole picture, distorted.
    Stretch,
    /// The whole picture, padded with black.
    Pad,
}

/// Order of the channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Rgb,
    Bgr,
}

/// Order of the input's dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Nchw,
    Nhwc,
}

/// Preprocessing options that were given; options that are not set come from the model, or else are the defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preprocess {
    fit: Option<Fit>,
    filter: Option<ResizeAlg>,
    mean: Option<Vec<f32>>,
    scale: Option<Vec<f32>>,
    order: Option<Order>,
    layout: Option<Layout>,
}

/// Default fit.
const FIT: Fit = Fit::Crop(1.0);
const FILTER: ResizeAlg = ResizeAlg::Convolution(FilterType::CatmullRom);

/// The keys with their values, for messages and help.
pub const KEYS: &str = "crop=SHARE, fit=crop|stretch|pad, filter=nearest|bilinear|bicubic|lanczos, mean=M or M:M:M, \
                        scale=S or S:S:S, channels=rgb|bgr, layout=nchw|nhwc";

impl std::str::FromStr for Preprocess {
    type Err = String;

    /// Parses `KEY=VALUE` pairs separated by commas.
    fn from_str(text: &str) -> Result<Preprocess, String> {
        let mut spec = Preprocess::default();
        let mut seen: Vec<&str> = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) =
                pair.split_once('=').ok_or_else(|| format!("{pair} is not of the form KEY=VALUE; keys are {KEYS}"))?;
            if seen.contains(&key) {
                return Err(format!("{key} is given twice"));
            }
            seen.push(key);
            let wrong = |takes: &str| format!("{key}={value}: {key} takes {takes}");
            match (key, value) {
                ("crop", _) => {
                    let share = value.parse().ok().filter(|share: &f64| *share > 0.0 && *share <= 1.0);
                    spec.fit = Some(Fit::Crop(share.ok_or_else(|| wrong("a fraction above 0, up to 1"))?));
                }
                ("fit", "crop") => spec.fit = Some(Fit::Crop(1.0)),
                ("fit", "stretch") => spec.fit = Some(Fit::Stretch),
                ("fit", "pad") => spec.fit = Some(Fit::Pad),
                ("fit", _) => return Err(wrong("crop, stretch or pad")),
                ("filter", "nearest") => spec.filter = Some(ResizeAlg::Nearest),
                ("filter", "bilinear") => spec.filter = Some(ResizeAlg::Convolution(FilterType::Bilinear)),
                ("filter", "bicubic") => spec.filter = Some(ResizeAlg::Convolution(FilterType::CatmullRom)),
                ("filter", "lanczos") => spec.filter = Some(ResizeAlg::Convolution(FilterType::Lanczos3)),
                ("filter", _) => return Err(wrong("nearest, bilinear, bicubic or lanczos")),
                ("mean", _) => {
                    spec.mean = Some(numbers(value).ok_or_else(|| wrong("a number, or three separated by colons"))?);
                }
                ("scale", _) => {
                    let scale = numbers(value).filter(|list| list.iter().all(|s| s.is_normal()));
                    spec.scale =
                        Some(scale.ok_or_else(|| wrong("a number other than 0, or three separated by colons"))?);
                }
                ("channels", "rgb") => spec.order = Some(Order::Rgb),
                ("channels", "bgr") => spec.order = Some(Order::Bgr),
                ("channels", _) => return Err(wrong("rgb or bgr")),
                ("layout", "nchw") => spec.layout = Some(Layout::Nchw),
                ("layout", "nhwc") => spec.layout = Some(Layout::Nhwc),
                ("layout", _) => return Err(wrong("nchw or nhwc")),
                _ => return Err(format!("{key} is not known; keys are {KEYS}")),
            }
        }
        if seen.contains(&"crop") && seen.contains(&"fit") {
            return Err("crop and fit exclude each other; give one of them".to_string());
        }
        Ok(spec)
    }
}

fn numbers(text: &str) -> Option<Vec<f32>> {
    let list: Option<Vec<f32>> =
        text.split(':').map(|n| n.trim().parse().ok().filter(|n: &f32| n.is_finite())).collect();
    list.filter(|list| matches!(list.len(), 1 | 3))
}

/// Whether a file has the extension of a supported picture format.
pub fn is_picture(path: &Path) -> bool {
    ends_with(path, ENDINGS)
}

fn ends_with(path: &Path, endings: &[&str]) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| endings.iter().any(|known| known.eq_ignore_ascii_case(e)))
}

/// Fails if a file has the extension of an unsupported picture format.
///
/// # Errors
/// [`PictureError::Format`].
pub fn check_format(path: &Path) -> Result<(), PictureError> {
    if ends_with(path, UNREAD) {
        return Err(PictureError::Format { file: path.display().to_string() });
    }
    Ok(())
}

/// Decodes a picture, the first one if there are several, and rotates it by its Exif orientation. `file` is its name in
/// errors.
///
/// # Errors
/// [`PictureError::Decode`].
pub fn decode(bytes: &[u8], file: &str) -> Result<DynamicImage, PictureError> {
    let upright = || -> Result<DynamicImage, ImageError> {
        let mut decoder = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?.into_decoder()?;
        // A damaged Exif orientation is ignored.
        let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        // Checks the size in the header before allocating memory for it.
        let mut limits = Limits::default();
        limits.reserve(decoder.total_bytes())?;
        decoder.set_limits(limits)?;
        let mut picture = DynamicImage::from_decoder(decoder)?;
        // The decoder would fill missing data without an error.
        if bytes.starts_with(JPEG) && !jpeg_ends(bytes) {
            return Err(ImageError::IoError(std::io::Error::other("the file is truncated")));
        }
        picture.apply_orientation(orientation);
        Ok(picture)
    };
    upright().map_err(|source| PictureError::Decode { file: file.to_string(), source })
}

/// First bytes of a JPEG file.
const JPEG: &[u8] = &[0xff, 0xd8];

/// Whether a JPEG file contains an end marker after the start of its scan. An earlier end marker can belong to a
/// thumbnail in its metadata.
fn jpeg_ends(bytes: &[u8]) -> bool {
    const SCAN: u8 = 0xda;
    const END: [u8; 2] = [0xff, 0xd9];
    let mut at = JPEG.len();
    while let Some(&[0xff, mark, high, low]) = bytes.get(at..at + 4)
        && mark != SCAN
    {
        // A marker can be padded with 0xff bytes; a segment's length includes its own two bytes.
        at += if mark == 0xff { 1 } else { 2 + usize::from(u16::from_be_bytes([high, low])) };
    }
    bytes.get(at..).is_some_and(|rest| rest.windows(2).any(|pair| pair == END))
}

/// Reads a picture file.
///
/// # Errors
/// [`PictureError::Read`], [`PictureError::Decode`].
pub fn read(path: &Path) -> Result<DynamicImage, PictureError> {
    let file = path.display().to_string();
    match std::fs::read(path) {
        Ok(bytes) => decode(&bytes, &file),
        Err(source) => Err(PictureError::Read { file, source }),
    }
}

/// Dimensions of a picture input.
struct Plane {
    width: usize,
    height: usize,
    channels: usize,
    layout: Layout,
}

impl Preprocess {
    /// Mean and scale, if both were given.
    pub fn normalization(&self) -> Option<Normalization> {
        Some(Normalization { mean: self.mean.clone()?, scale: self.scale.clone()? })
    }

    /// Whether only mean and scale were given, which also apply to arrays of bytes.
    pub fn is_of_numbers(&self) -> bool {
        let Preprocess { fit, filter, mean: _, scale: _, order, layout } = self;
        fit.is_none() && filter.is_none() && order.is_none() && layout.is_none()
    }

    /// The mean, if it was given.
    pub fn mean(&self) -> Option<&[f32]> {
        self.mean.as_deref()
    }

    /// The scale, if it was given.
    pub fn scale(&self) -> Option<&[f32]> {
        self.scale.as_deref()
    }

    /// Whether `channels=bgr` was given.
    pub fn is_bgr(&self) -> bool {
        self.order == Some(Order::Bgr)
    }

    /// Returns these options, with those that are not set taken from `base`.
    pub fn over(&self, base: &Preprocess) -> Preprocess {
        Preprocess {
            fit: self.fit.or(base.fit),
            filter: self.filter.or(base.filter),
            mean: self.mean.clone().or_else(|| base.mean.clone()),
            scale: self.scale.clone().or_else(|| base.scale.clone()),
            order: self.order.or(base.order),
            layout: self.layout.or(base.layout),
        }
    }

    /// Converts pictures to a tensor with the input's element type and shape, concatenated along the first dimension.
    ///
    /// # Errors
    /// [`PictureError::Shape`] or [`PictureError::Normalization`].
    pub fn tensor(&self, pictures: &[DynamicImage], input: &ValueInfo, edge: &Edge) -> Result<Tensor, PictureError> {
        let plane = self.plane(input)?;
        let value = self.value(input, edge, plane.channels)?;
        let order = self.order.unwrap_or(if edge.bgr { Order::Bgr } else { Order::Rgb });
        let mut bytes =
            Vec::with_capacity(pictures.len() * plane.width * plane.height * plane.channels * input.dtype.size());
        for picture in pictures {
            let pixels = self.sized(picture, &plane);
            let sample = |y: usize, x: usize, channel: usize| {
                let channel = if order == Order::Bgr { plane.channels - 1 - channel } else { channel };
                pixels[(y * plane.width + x) * plane.channels + channel]
            };
            let mut put = |y, x, channel| value(f32::from(sample(y, x, channel)), channel, &mut bytes);
            match plane.layout {
                Layout::Nhwc => every(plane.height, plane.width, plane.channels, &mut put),
                Layout::Nchw => every(plane.channels, plane.height, plane.width, |c, y, x| put(y, x, c)),
            }
        }
        let mut shape = input.shape.clone();
        if input.shape.len() == 4 {
            shape[0] = pictures.len();
        } else {
            // Without a batch dimension, pictures are concatenated along the outermost dimension.
            shape[0] *= pictures.len();
        }
        Ok(Tensor { dtype: input.dtype, shape, bytes: bytes.into() })
    }

    fn plane(&self, input: &ValueInfo) -> Result<Plane, PictureError> {
        let ty = format!("{} {}", input.dtype, shape_text(&input.shape));
        let wrong = |why: &str| PictureError::Shape { name: input.name.clone(), ty: ty.clone(), why: why.to_string() };
        let sizes = match input.shape.as_slice() {
            [_, rest @ ..] if rest.len() == 3 => rest,
            rest if rest.len() == 3 => rest,
            _ => return Err(wrong("it needs height, width and channels")),
        };
        let few = |n: usize| matches!(n, 1 | 3);
        let layout = match (self.layout, few(sizes[0]), few(sizes[2])) {
            (Some(layout), ..) => layout,
            (None, true, false) => Layout::Nchw,
            (None, false, true) => Layout::Nhwc,
            (None, true, true) => {
                return Err(wrong("give its layout with --preprocess layout=nchw or nhwc"));
            }
            (None, false, false) => return Err(wrong("one dimension must be 1 or 3 channels")),
        };
        let (channels, height, width) = match layout {
            Layout::Nchw => (sizes[0], sizes[1], sizes[2]),
            Layout::Nhwc => (sizes[2], sizes[0], sizes[1]),
        };
        if !few(channels) || height == 0 || width == 0 {
            return Err(wrong("pictures have 1 or 3 channels, and at least one pixel"));
        }
        Ok(Plane { width, height, channels, layout })
    }

    /// Returns a function that converts a channel's brightness, 0 to 255, and appends its bytes.
    #[allow(clippy::type_complexity)] // one closure for one type of input
    fn value(
        &self,
        input: &ValueInfo,
        edge: &Edge,
        channels: usize,
    ) -> Result<Box<dyn Fn(f32, usize, &mut Vec<u8>)>, PictureError> {
        let normalization = match (&self.mean, &self.scale, &edge.normalization) {
            (None, None, None) => None,
            (mean, scale, own) => Some(Normalization {
                mean: mean.clone().or_else(|| own.as_ref().map(|n| n.mean.clone())).unwrap_or(vec![0.0]),
                scale: scale.clone().or_else(|| own.as_ref().map(|n| n.scale.clone())).unwrap_or(vec![1.0]),
            }),
        };
        let wrong = |list: &[f32]| list.len() != 1 && list.len() != channels;
        let asked = [&self.mean, &self.scale].into_iter().flatten().any(|list| wrong(list));
        if normalization.as_ref().is_some_and(|n| wrong(&n.mean) || wrong(&n.scale)) {
            let (who, remedy) = if asked {
                ("--preprocess gives", "")
            } else {
                ("the model's metadata give", "; give others with --preprocess mean=…,scale=…")
            };
            return Err(PictureError::Shape {
                name: input.name.clone(),
                ty: format!("{} {}", input.dtype, shape_text(&input.shape)),
                why: format!("{who} a mean or scale for a number of channels other than {channels}{remedy}"),
            });
        }
        let real = normalization.map(|n| {
            move |pixel: f32, channel: usize| {
                (pixel - n.mean[channel.min(n.mean.len() - 1)]) / n.scale[channel.min(n.scale.len() - 1)]
            }
        });
        let quantized = |lowest: i32| {
            let (scale, zero_point) = edge.quantization.unwrap_or((1.0, lowest));
            move |value: f32| {
                ((value / scale).round_ties_even() as i32).saturating_add(zero_point).clamp(lowest, lowest + 255)
            }
        };
        Ok(match (input.dtype, real) {
            (DType::F32, Some(real)) => {
                Box::new(move |pixel, channel, bytes| bytes.extend(real(pixel, channel).to_le_bytes()))
            }
            (DType::F64, Some(real)) => {
                Box::new(move |pixel, channel, bytes| bytes.extend(f64::from(real(pixel, channel)).to_le_bytes()))
            }
            (DType::U8, Some(real)) => {
                let quantized = quantized(0);
                Box::new(move |pixel, channel, bytes| bytes.push(quantized(real(pixel, channel)) as u8))
            }
            (DType::I8, Some(real)) => {
                let quantized = quantized(-128);
                Box::new(move |pixel, channel, bytes| bytes.push(quantized(real(pixel, channel)) as i8 as u8))
            }
            // By default, u8 inputs get the pixels unchanged, and i8 inputs the pixels minus 128.
            (DType::U8, None) => Box::new(|pixel, _, bytes| bytes.push(pixel as u8)),
            (DType::I8, None) => Box::new(|pixel, _, bytes| bytes.push((pixel as i32 - 128) as i8 as u8)),
            (DType::F32 | DType::F64, None) => {
                return Err(PictureError::Normalization { name: input.name.clone(), dtype: input.dtype });
            }
            _ => {
                return Err(PictureError::Shape {
                    name: input.name.clone(),
                    ty: format!("{} {}", input.dtype, shape_text(&input.shape)),
                    why: "pictures become f32, f64, u8 or i8".to_string(),
                });
            }
        })
    }

    /// The picture's pixels in the input's size, 0 to 255, with interleaved channels.
    fn sized(&self, picture: &DynamicImage, plane: &Plane) -> Vec<u8> {
        let (width, height) = (plane.width as u32, plane.height as u32);
        let (w, h) = picture.dimensions();
        // Size of the crop in the input's proportions, limited to the picture.
        let cut = |largest: f64| {
            let side = |size: u32, whole: u32| ((f64::from(size) * largest) as u32).clamp(1, whole);
            (side(width, w), side(height, h))
        };
        let (across, down) = (f64::from(w) / f64::from(width), f64::from(h) / f64::from(height));
        let (from_w, from_h, to_w, to_h) = match self.fit.unwrap_or(FIT) {
            Fit::Stretch => (w, h, width, height),
            Fit::Crop(share) => {
                let (from_w, from_h) = cut(across.min(down) * share);
                (from_w, from_h, width, height)
            }
            Fit::Pad => {
                let larger = across.max(down);
                let side = |size: u32, most: u32| ((f64::from(size) / larger).round() as u32).clamp(1, most);
                (w, h, side(w, width), side(h, height))
            }
        };
        let (pixels, ty) = match plane.channels {
            1 => (picture.to_luma8().into_raw(), PixelType::F32),
            _ => (picture.to_rgb8().into_raw(), PixelType::F32x3),
        };
        let cut = [(w - from_w) / 2, (h - from_h) / 2, from_w, from_h].map(f64::from);
        // Cannot fail: a decoded picture has pixels, and the crop is inside it.
        let small = resized(pixels, (w, h), ty, cut, (to_w, to_h), self.filter.unwrap_or(FILTER)).unwrap_or_default();
        if (to_w, to_h) == (width, height) {
            return small;
        }
        let (left, top) = ((width - to_w) as usize / 2, (height - to_h) as usize / 2);
        let mut whole = vec![0; plane.width * plane.height * plane.channels];
        let row = to_w as usize * plane.channels;
        for (y, line) in small.chunks_exact(row).enumerate() {
            let at = ((top + y) * plane.width + left) * plane.channels;
            whole[at..at + row].copy_from_slice(line);
        }
        whole
    }
}

/// Resizes a part (left, top, width, height) of a picture; values are rounded once, at the end.
fn resized(
    pixels: Vec<u8>,
    (w, h): (u32, u32),
    ty: PixelType,
    [left, top, width, height]: [f64; 4],
    (to_w, to_h): (u32, u32),
    filter: ResizeAlg,
) -> Option<Vec<u8>> {
    let floats: Vec<u8> = pixels.iter().flat_map(|&p| f32::from(p).to_ne_bytes()).collect();
    let from = Image::from_vec_u8(w, h, floats, ty).ok()?;
    let mut to = Image::new(to_w, to_h, ty);
    let options = ResizeOptions::new().resize_alg(filter).crop(left, top, width, height);
    Resizer::new().resize(&from, &mut to, &options).ok()?;
    let value = |bytes: &[u8]| bytes.try_into().map_or(0.0, f32::from_ne_bytes);
    Some(to.buffer().chunks_exact(4).map(|bytes| value(bytes).round_ties_even().clamp(0.0, 255.0) as u8).collect())
}

/// Calls `f` for each index of three nested dimensions, the last one innermost.
fn every(outer: usize, middle: usize, inner: usize, mut f: impl FnMut(usize, usize, usize)) {
    for a in 0..outer {
        for b in 0..middle {
            for c in 0..inner {
                f(a, b, c);
            }
        }
    }
}

#[cfg(test)]
mod tests;
