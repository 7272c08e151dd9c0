"""Networks of Keras, small or with small inputs, that TensorFlow's converter makes into TFLite files."""
from tensorflow import keras

L, A = keras.layers, keras.applications


def chain(shape, *layers, dtype=None):
    return keras.Sequential([L.Input(shape, dtype=dtype), *layers])


def classes(count=10):
    return [L.GlobalAveragePooling2D(), L.Dense(count), L.Softmax()]


def convolution(channels, kernel=3, activation="relu", **options):
    return L.Conv2D(channels, kernel, padding="same", activation=activation, **options)


def application(make, size=64, **options):
    return lambda: make(input_shape=(size, size, 3), weights=None, classes=10, **options)


def unet():
    image = L.Input((32, 32, 3))
    fine = convolution(8)(image)
    middle = convolution(16)(L.MaxPool2D()(fine))
    coarse = convolution(24)(L.MaxPool2D()(middle))
    x = L.Concatenate()([L.UpSampling2D(interpolation="bilinear")(coarse), middle])
    x = L.Conv2DTranspose(8, 3, strides=2, padding="same")(convolution(16)(x))
    return keras.Model(image, L.Conv2D(4, 1, activation="softmax")(L.Concatenate()([x, fine])))


def transformer():
    words = L.Input((16,), dtype="int32")
    x = L.Embedding(100, 32)(words)
    x = L.LayerNormalization()(x + L.MultiHeadAttention(4, 8)(x, x))
    hidden = L.Dense(32)(L.Dense(64, activation="gelu")(x))
    x = L.LayerNormalization()(x + hidden)
    return keras.Model(words, L.Dense(5, activation="softmax")(L.GlobalAveragePooling1D()(x)))


def activations():
    image = L.Input((16, 16, 4))
    x = L.Conv2D(8, 3)(image)
    names = ("tanh", "sigmoid", "hard_silu", "silu", "softplus", "exponential")
    functions = [L.PReLU(shared_axes=[1, 2]), L.LeakyReLU(0.2), L.ELU(), L.ReLU(6.0), *map(L.Activation, names)]
    return keras.Model(image, L.Conv2D(4, 1)(L.Concatenate()([f(x) for f in functions])))


def arithmetic():
    image = L.Input((12, 12, 4))
    both = [L.Conv2D(4, 3, padding="same")(image), L.Conv2D(4, 1)(image)]
    joined = [L.Add(), L.Subtract(), L.Multiply(), L.Maximum(), L.Minimum(), L.Average()]
    x = L.Concatenate()([f(both) for f in joined])
    x = L.AveragePooling2D(2)(L.Cropping2D(1)(L.ZeroPadding2D(2)(x)))
    return keras.Model(image, L.Dense(3)(L.Flatten()(L.Permute((2, 1, 3))(x))))


def squeeze_excite():
    image = L.Input((24, 24, 8))
    x = L.Conv2D(16, 3, strides=2, padding="same", use_bias=False)(image)
    x = L.Activation("silu")(L.BatchNormalization()(x))
    gate = convolution(4, 1)(L.GlobalAveragePooling2D(keepdims=True)(x))
    x = L.Multiply()([x, convolution(16, 1, "sigmoid")(gate)])
    return keras.Model(image, keras.Sequential(classes())(x))


def norms():
    image = L.Input((8, 8, 16))
    x = L.Conv2D(16, 1)(L.LayerNormalization()(image))
    return keras.Model(image, L.UnitNormalization()(L.GroupNormalization(4)(x)))


NETWORKS = {
    "mobilenet": application(A.MobileNet, alpha=0.25),
    "mobilenet_v2": application(A.MobileNetV2, alpha=0.35),
    "mobilenet_v3": application(A.MobileNetV3Small, alpha=0.75),
    "efficientnet": application(A.EfficientNetB0),
    "efficientnet_v2": application(A.EfficientNetV2B0),
    "densenet": application(A.DenseNet121),
    "resnet50": application(A.ResNet50),
    "xception": application(A.Xception, 75),
    "nasnet": application(A.NASNetMobile),
    "convnext": lambda: chain(
        (32, 32, 3), L.Conv2D(16, 4, strides=4), L.DepthwiseConv2D(7, padding="same"), L.LayerNormalization(epsilon=1e-6),
        L.Dense(64, activation="gelu"), L.Dense(16), *classes()),
    "keyword": lambda: chain(
        (49, 10, 1), convolution(16, (10, 4), strides=2), L.SeparableConv2D(16, 3, padding="same", activation="relu"),
        L.Dropout(0.2), *classes(12)),
    "conv1d": lambda: chain(
        (64, 4), L.Conv1D(8, 5, dilation_rate=2, padding="causal", activation="relu"), L.MaxPool1D(2), L.SeparableConv1D(16, 3),
        L.GlobalMaxPooling1D(), L.Dense(4)),
    "lstm": lambda: chain(
        (20, 8), L.LSTM(16, return_sequences=True, unroll=True), L.LSTM(8, unroll=True), L.Dense(4, activation="softmax")),
    "gru": lambda: chain((20, 8), L.GRU(16, unroll=True), L.Dense(4)),
    "bilstm": lambda: chain(
        (12,), L.Embedding(50, 8), L.Bidirectional(L.LSTM(8, unroll=True)), L.Dense(2, activation="sigmoid"), dtype="int32"),
    "autoencoder": lambda: chain(
        (64,), L.Dense(32, activation="relu"), L.BatchNormalization(), L.Dense(8, activation="relu"),
        L.Dense(32, activation="relu"), L.Dense(64)),
    "unet": unet,
    "transformer": transformer,
    "activations": activations,
    "arithmetic": arithmetic,
    "squeeze_excite": squeeze_excite,
    "norms": norms,
}
