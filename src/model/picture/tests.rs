use super::*;
use image::{ImageFormat, Rgb, RgbImage};

fn input(dtype: DType, shape: &[usize]) -> ValueInfo {
    ValueInfo::new("image", dtype, shape.to_vec())
}

/// Width 4, height 2; red is ten times the column, green ten times the row, blue 200.
fn ramp() -> DynamicImage {
    DynamicImage::ImageRgb8(RgbImage::from_fn(4, 2, |x, y| Rgb([10 * x as u8, 10 * y as u8, 200])))
}

fn tensor(spec: &str, input: &ValueInfo, edge: &Edge) -> Result<Tensor, PictureError> {
    spec.parse::<Preprocess>().expect(spec).tensor(&[ramp()], input, edge)
}

fn floats(tensor: &Tensor) -> Vec<f64> {
    (0..tensor.len()).map(|i| tensor.get_f64(i)).collect()
}

#[test]
fn channels_lie_where_the_input_has_them() {
    let spec = "fit=stretch,filter=nearest,mean=0,scale=10";
    let nhwc = tensor(spec, &input(DType::F32, &[1, 2, 4, 3]), &Edge::default()).unwrap();
    assert_eq!(nhwc.shape, [1, 2, 4, 3]);
    assert_eq!(floats(&nhwc)[..9], [0.0, 0.0, 20.0, 1.0, 0.0, 20.0, 2.0, 0.0, 20.0]);
    let nchw = tensor(spec, &input(DType::F32, &[1, 3, 2, 4]), &Edge::default()).unwrap();
    assert_eq!(floats(&nchw)[..12], [0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0]);
    let bgr = tensor(&format!("{spec},channels=bgr"), &input(DType::F32, &[1, 3, 2, 4]), &Edge::default()).unwrap();
    assert_eq!(floats(&bgr)[..2], [20.0, 20.0]);
    assert_eq!(floats(&bgr)[16..20], [0.0, 1.0, 2.0, 3.0]);
}

#[test]
fn a_crop_keeps_proportions_and_the_centre() {
    let square = tensor("filter=nearest,mean=0,scale=1", &input(DType::F32, &[1, 2, 2, 3]), &Edge::default()).unwrap();
    let reds: Vec<f64> = floats(&square).chunks(3).map(|p| p[0]).collect();
    assert_eq!(reds, [10.0, 20.0, 10.0, 20.0]);
    let padded =
        tensor("fit=pad,filter=nearest,mean=0,scale=1", &input(DType::F32, &[1, 4, 4, 3]), &Edge::default()).unwrap();
    let blues: Vec<f64> = floats(&padded).chunks(12).map(|row| row[2]).collect();
    assert_eq!(blues, [0.0, 200.0, 200.0, 0.0]);
}

#[test]
fn inputs_of_8_bits_take_pixels_or_what_the_file_says() {
    let plain = tensor("fit=stretch,filter=nearest", &input(DType::I8, &[1, 2, 4, 3]), &Edge::default()).unwrap();
    assert_eq!(floats(&plain)[..3], [-128.0, -128.0, 72.0]);
    let normalization = Some(Normalization { mean: vec![100.0], scale: vec![50.0] });
    let edge = Edge { quantization: Some((0.5, 10)), normalization, ..Edge::default() };
    let quantized = tensor("fit=stretch,filter=nearest", &input(DType::U8, &[1, 2, 4, 3]), &edge).unwrap();
    // (0 - 100) / 50 = -2, -4 steps; (200 - 100) / 50 = 2, 4 steps.
    assert_eq!(floats(&quantized)[..3], [6.0, 6.0, 14.0]);
    let asked = tensor("fit=stretch,filter=nearest,mean=0", &input(DType::U8, &[1, 2, 4, 3]), &edge).unwrap();
    assert_eq!(floats(&asked)[..3], [10.0, 10.0, 18.0], "options override the file");
}

#[test]
fn several_pictures_lie_behind_each_other() {
    let input = input(DType::U8, &[1, 2, 4, 3]);
    let two = Preprocess::default().tensor(&[ramp(), ramp()], &input, &Edge::default()).unwrap();
    assert_eq!(two.shape, [2, 2, 4, 3]);
    assert_eq!(two.bytes[..24], two.bytes[24..]);
}

#[test]
fn inputs_that_take_no_picture_say_why() {
    let error = |spec: &str, dtype, shape: &[usize]| {
        tensor(spec, &input(dtype, shape), &Edge::default()).unwrap_err().to_string()
    };
    assert!(error("", DType::F32, &[1, 3, 8, 8]).contains("--preprocess mean=127.5,scale=127.5"));
    assert!(error("mean=0", DType::F32, &[1, 640]).contains("height, width and channels"));
    assert!(error("mean=0", DType::F32, &[1, 7, 8, 9]).contains("1 or 3 channels"));
    assert!(error("mean=0", DType::F32, &[1, 3, 8, 3]).contains("layout=nchw or nhwc"));
    assert!(error("mean=0", DType::I64, &[1, 3, 8, 8]).contains("f32, f64, u8 or i8"));
    let asked = error("mean=1:2:3", DType::F32, &[1, 1, 8, 8]);
    assert!(asked.contains("--preprocess gives a mean or scale for a number of channels other than 1"), "{asked}");
    // The message blames the file, not the option.
    let normalization = Some(Normalization { mean: vec![1.0, 2.0], scale: vec![1.0] });
    let edge = Edge { normalization, ..Edge::default() };
    let own = |spec: &str| tensor(spec, &input(DType::F32, &[1, 8, 8, 3]), &edge).map_err(|e| e.to_string());
    let found = own("scale=2").unwrap_err();
    assert!(
        found.contains("the model's metadata give a mean or scale for a number of channels other than 3"),
        "{found}"
    );
    assert!(own("mean=0").is_ok());
}

#[test]
fn a_wrong_preparation_is_named() {
    let error = |text: &str| text.parse::<Preprocess>().unwrap_err();
    assert_eq!(error("crop"), format!("crop is not of the form KEY=VALUE; keys are {KEYS}"));
    assert_eq!(error("zoom=2"), format!("zoom is not known; keys are {KEYS}"));
    assert_eq!(error("crop=1.5"), "crop=1.5: crop takes a fraction above 0, up to 1");
    assert_eq!(error("scale=0"), "scale=0: scale takes a number other than 0, or three separated by colons");
    assert_eq!(error("mean=1:2"), "mean=1:2: mean takes a number, or three separated by colons");
    assert_eq!(error("mean=1,mean=2"), "mean is given twice");
    assert_eq!(error("crop=0.5,fit=pad"), "crop and fit exclude each other; give one of them");
}

#[test]
fn what_is_no_picture_is_named() {
    let error = decode(b"no picture", "cat.png").unwrap_err().to_string();
    assert!(error.starts_with("cat.png is not a picture that can be read: "), "{error}");
    let cut = &include_bytes!("../../../tests/models/photos/chelsea.png")[..1000];
    assert!(decode(cut, "cut.png").is_err());
    let error = read(Path::new("nowhere/cat.jpg")).unwrap_err().to_string();
    assert!(error.contains("nowhere/cat.jpg"), "{error}");
}

#[test]
fn a_picture_that_claims_more_than_memory_is_refused_by_its_head() {
    // The header of a bitmap of 65,535 x 65,535 pixels, without pixels.
    let mut head = b"BM\x36\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
    head.extend([65535u32, 65535].iter().flat_map(|n| n.to_le_bytes()));
    head.extend(b"\x01\0\x18\0");
    head.extend([0u8; 24]);
    let refused = decode(&head, "large.bmp").unwrap_err();
    assert!(matches!(&refused, PictureError::Decode { source: image::ImageError::Limits(_), .. }), "{refused}");
}

/// Encodes a picture in a format.
fn file(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

#[test]
fn a_jpeg_that_ends_early_is_refused() {
    let whole = file(&ramp(), ImageFormat::Jpeg);
    assert!(decode(&whole, "ramp.jpg").is_ok());
    // Bytes after the picture are ignored.
    assert!(decode(&[&whole[..], b"more"].concat(), "ramp.jpg").is_ok());
    for kept in [whole.len() - 1, whole.len() - 2, whole.len() - 10] {
        let error = decode(&whole[..kept], "ramp.jpg").unwrap_err().to_string();
        let expected = "ramp.jpg is not a picture that can be read: the file is truncated; give a PNG, ";
        assert!(error.starts_with(expected), "{kept}: {error}");
    }
    // A metadata segment that contains an end marker.
    let description = [&[0xff, 0xe1, 0, 6][..], &[0xff, 0xd9, 0, 0]].concat();
    let described = [&whole[..2], &description, &whole[2..]].concat();
    assert!(decode(&described, "ramp.jpg").is_ok() && decode(&described[..described.len() - 2], "ramp.jpg").is_err());
}

#[test]
fn files_of_each_format_are_read() {
    for format in [ImageFormat::Png, ImageFormat::Bmp, ImageFormat::WebP, ImageFormat::Gif] {
        let picture = if format == ImageFormat::Gif { DynamicImage::from(ramp().to_rgba8()) } else { ramp() };
        let found = decode(&file(&picture, format), "ramp").unwrap().to_rgb8();
        let near = |(a, b): (&u8, &u8)| a.abs_diff(*b) <= if format == ImageFormat::Gif { 8 } else { 0 };
        assert!(found.iter().zip(ramp().to_rgb8().iter()).all(near), "{format:?}: {found:?}");
    }
    assert!(["a.WEBP", "a.bmp", "a.gif", "a.jpeg"].iter().all(|name| is_picture(Path::new(name))));
    let error = check_format(Path::new("IMG_1.HEIC")).unwrap_err().to_string();
    assert_eq!(error, "IMG_1.HEIC is a picture in an unsupported format; convert it to PNG, JPEG, WebP, BMP or GIF");
    assert!(check_format(Path::new("a.npy")).is_ok());
}

#[test]
fn photos_are_turned_as_the_camera_was_held() {
    // Bright top, dark bottom.
    let photo = DynamicImage::ImageRgb8(RgbImage::from_fn(32, 16, |_, y| Rgb([if y < 8 { 250 } else { 5 }; 3])));
    let plain = file(&photo, ImageFormat::Jpeg);
    // An Exif segment with the orientation, after the file's first two bytes.
    let turned = |orientation: u8| {
        let mut exif = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
        exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
        let length = (exif.len() + 2) as u16;
        let segment = [&[0xff, 0xe1][..], &length.to_be_bytes(), &exif].concat();
        decode(&[&plain[..2], &segment, &plain[2..]].concat(), "photo.jpg").unwrap().to_rgb8()
    };
    let bright = |p: &Rgb<u8>| p.0[0] > 128;
    assert_eq!(turned(1).dimensions(), (32, 16));
    assert!(bright(turned(1).get_pixel(16, 2)) && !bright(turned(1).get_pixel(16, 14)));
    assert!(!bright(turned(3).get_pixel(16, 2)) && bright(turned(3).get_pixel(16, 14)));
    // Portrait, with the camera's top at the right.
    assert_eq!(turned(6).dimensions(), (16, 32));
    assert!(bright(turned(6).get_pixel(14, 16)) && !bright(turned(6).get_pixel(2, 16)));
    assert!(!bright(turned(8).get_pixel(14, 16)) && bright(turned(8).get_pixel(2, 16)));
}

#[test]
fn what_is_asked_for_stands_above_what_is_known() {
    let parsed = |text: &str| text.parse::<Preprocess>().expect(text);
    let known = parsed("fit=pad,filter=bilinear,mean=127.5,scale=127.5,channels=bgr");
    assert_eq!(
        parsed("fit=stretch").over(&known),
        parsed("fit=stretch,filter=bilinear,mean=127.5,scale=127.5,channels=bgr")
    );
    assert_eq!(
        parsed("channels=rgb,mean=0").over(&known),
        parsed("fit=pad,filter=bilinear,mean=0,scale=127.5,channels=rgb")
    );
}

#[test]
fn scales_of_no_size_stay_within_8_bits() {
    let edge = Edge { quantization: Some((1e-30, 100)), ..Edge::default() };
    let spec = "fit=stretch,filter=nearest,mean=0,scale=1";
    let white = tensor(spec, &input(DType::U8, &[1, 2, 4, 3]), &edge).unwrap();
    assert_eq!(floats(&white)[2], 255.0);
}
