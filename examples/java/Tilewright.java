import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Runs compiled models through the C interface of Tilewright (include/tilewright.h), by the foreign-function API of Java
 * 22 and later. The library is found in {@code java.library.path}.
 */
public final class Tilewright {
    /** An array of elements in row-major order: {@code dtype} is i8, u8, f32 and so on, {@code data} little endian. */
    public record Tensor(String dtype, long[] shape, byte[] data) {}

    /** What an input or output is; {@code shape} has -1 where the model leaves a length open. */
    public record Description(String name, String dtype, long[] shape) {}

    private static final int INTEGER = 1;
    private static final int ABI_VERSION = 1;
    /** Kind, 0, and a number or handle. */
    private static final MemoryLayout VALUE = MemoryLayout.structLayout(JAVA_INT, JAVA_INT, JAVA_LONG);
    /** Code, bits, lanes. */
    private static final MemoryLayout DTYPE = MemoryLayout.structLayout(JAVA_BYTE, JAVA_BYTE, JAVA_SHORT);

    private static final SymbolLookup LIBRARY = library();
    private static final MethodHandle ERROR = function("tw_error", FunctionDescriptor.of(ADDRESS));
    private static final MethodHandle VERSION = function("tw_abi_version", FunctionDescriptor.of(JAVA_INT));
    private static final MethodHandle ARTIFACT_OPEN = status("tw_artifact_open", ADDRESS, ADDRESS);
    private static final MethodHandle STRING_NEW = status("tw_string_new", ADDRESS, JAVA_LONG, ADDRESS);
    private static final MethodHandle SESSION_OPEN = status("tw_session_open", VALUE, VALUE, ADDRESS);
    private static final MethodHandle MODULE_FUNCTION = status("tw_module_function", VALUE, ADDRESS, ADDRESS);
    private static final MethodHandle FUNCTION_CALL = status("tw_function_call", VALUE, ADDRESS, JAVA_LONG, ADDRESS);
    private static final MethodHandle TENSOR_NEW =
            status("tw_tensor_new", ADDRESS, DTYPE, ADDRESS, JAVA_LONG, ADDRESS);
    private static final MethodHandle TENSOR_VIEW =
            status("tw_tensor_view", VALUE, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS);
    private static final MethodHandle VALUE_LENGTH = status("tw_value_length", VALUE, ADDRESS);
    private static final MethodHandle VALUE_ITEM = status("tw_value_item", VALUE, JAVA_LONG, ADDRESS);
    private static final MethodHandle VALUE_NAMED = status("tw_value_named", VALUE, ADDRESS, ADDRESS);
    private static final MethodHandle VALUE_DATA = status("tw_value_data", VALUE, ADDRESS, ADDRESS);
    private static final MethodHandle VALUE_FREE = status("tw_value_free", VALUE);

    private Tilewright() {}

    /** A compiled model with a session on a device. One thread at a time may run it. */
    public static final class Model implements AutoCloseable {
        private final Arena arena = Arena.ofShared();
        private final MemorySegment session;
        private final List<Description> inputs;
        private final List<Description> outputs;

        /**
         * Opens an artifact of {@code tilewright compile} and prepares it on a device by its name: fsim, csim,
         * serial:PATH or others.
         *
         * @throws IllegalStateException with the library's text
         */
        public Model(String path, String device) {
            int version = (int) call(VERSION);
            if (version != ABI_VERSION) {
                throw new IllegalStateException(
                        "the library has version " + version + " of the interface, this program " + ABI_VERSION);
            }
            session = arena.allocate(VALUE);
            try (Arena own = Arena.ofConfined()) {
                MemorySegment artifact = own.allocate(VALUE);
                check(ARTIFACT_OPEN, own.allocateFrom(path), artifact);
                MemorySegment name = own.allocate(VALUE);
                MemorySegment text = own.allocateFrom(device);
                check(STRING_NEW, text, text.byteSize() - 1, name);
                try {
                    check(SESSION_OPEN, artifact, name, session);
                } finally {
                    check(VALUE_FREE, name);
                    check(VALUE_FREE, artifact);
                }
            }
            inputs = describe("inputs");
            outputs = describe("outputs");
        }

        /** What the model takes, in its order. */
        public List<Description> inputs() {
            return inputs;
        }

        /** What it returns, in its order. */
        public List<Description> outputs() {
            return outputs;
        }

        /**
         * Runs the model once on inputs in its order, and returns its outputs.
         *
         * @throws IllegalStateException with the library's text
         */
        public List<Tensor> run(Tensor... tensors) {
            try (Arena own = Arena.ofConfined()) {
                MemorySegment arguments = own.allocate(VALUE, Math.max(tensors.length, 1));
                int made = 0;
                try {
                    for (Tensor tensor : tensors) {
                        put(own, tensor, item(arguments, made));
                        made++;
                    }
                    MemorySegment list = invoke(own, "run", arguments, tensors.length);
                    List<Tensor> results = new ArrayList<>();
                    for (MemorySegment output : items(own, list)) {
                        results.add(take(own, output));
                        check(VALUE_FREE, output);
                    }
                    check(VALUE_FREE, list);
                    return results;
                } finally {
                    for (int i = 0; i < made; i++) {
                        check(VALUE_FREE, item(arguments, i));
                    }
                }
            }
        }

        @Override
        public void close() {
            check(VALUE_FREE, session);
            arena.close();
        }

        private MemorySegment invoke(Arena own, String name, MemorySegment arguments, long count) {
            MemorySegment function = own.allocate(VALUE);
            check(MODULE_FUNCTION, session, own.allocateFrom(name), function);
            try {
                MemorySegment result = own.allocate(VALUE);
                check(FUNCTION_CALL, function, arguments, count, result);
                return result;
            } finally {
                check(VALUE_FREE, function);
            }
        }

        private List<Description> describe(String what) {
            try (Arena own = Arena.ofConfined()) {
                MemorySegment list = invoke(own, what, MemorySegment.NULL, 0);
                List<Description> found = new ArrayList<>();
                for (MemorySegment item : items(own, list)) {
                    MemorySegment shape = named(own, item, "shape");
                    List<MemorySegment> lengths = items(own, shape);
                    // An open length is a name or no value.
                    long[] sizes = lengths.stream()
                            .mapToLong(v -> v.get(JAVA_INT, 0) == INTEGER ? v.get(JAVA_LONG, 8) : -1)
                            .toArray();
                    found.add(new Description(text(own, item, "name"), text(own, item, "dtype"), sizes));
                    lengths.forEach(length -> check(VALUE_FREE, length));
                    check(VALUE_FREE, shape);
                    check(VALUE_FREE, item);
                }
                check(VALUE_FREE, list);
                return found;
            }
        }
    }

    /** Bytes of one element of a type. */
    public static int bytes(String dtype) {
        return dtype.equals("bool") ? 1 : Integer.parseInt(dtype.substring(1)) / 8;
    }

    private static SymbolLookup library() {
        System.loadLibrary("tilewright_sim");
        return SymbolLookup.loaderLookup();
    }

    private static MethodHandle function(String name, FunctionDescriptor type) {
        return Linker.nativeLinker().downcallHandle(LIBRARY.find(name).orElseThrow(), type);
    }

    private static MethodHandle status(String name, MemoryLayout... arguments) {
        return function(name, FunctionDescriptor.of(JAVA_INT, arguments));
    }

    private static Object call(MethodHandle function, Object... arguments) {
        try {
            return function.invokeWithArguments(arguments);
        } catch (RuntimeException | Error error) {
            throw error;
        } catch (Throwable error) {
            throw new IllegalStateException(error);
        }
    }

    private static void check(MethodHandle function, Object... arguments) {
        if ((int) call(function, arguments) != 0) {
            MemorySegment text = (MemorySegment) call(ERROR);
            throw new IllegalStateException(text.reinterpret(Long.MAX_VALUE).getString(0));
        }
    }

    private static MemorySegment item(MemorySegment values, long place) {
        return values.asSlice(place * VALUE.byteSize(), VALUE.byteSize());
    }

    private static List<MemorySegment> items(Arena own, MemorySegment list) {
        MemorySegment length = own.allocate(JAVA_LONG);
        check(VALUE_LENGTH, list, length);
        List<MemorySegment> found = new ArrayList<>();
        for (long i = 0; i < length.get(JAVA_LONG, 0); i++) {
            MemorySegment item = own.allocate(VALUE);
            check(VALUE_ITEM, list, i, item);
            found.add(item);
        }
        return found;
    }

    private static MemorySegment named(Arena own, MemorySegment map, String name) {
        MemorySegment item = own.allocate(VALUE);
        check(VALUE_NAMED, map, own.allocateFrom(name), item);
        return item;
    }

    private static String text(Arena own, MemorySegment map, String name) {
        MemorySegment value = named(own, map, name);
        MemorySegment data = own.allocate(ADDRESS);
        MemorySegment length = own.allocate(JAVA_LONG);
        check(VALUE_DATA, value, data, length);
        byte[] bytes = data.get(ADDRESS, 0).reinterpret(length.get(JAVA_LONG, 0)).toArray(JAVA_BYTE);
        check(VALUE_FREE, value);
        return new String(bytes, java.nio.charset.StandardCharsets.UTF_8);
    }

    /** Makes a tensor of the library, which copies the elements. */
    private static void put(Arena own, Tensor tensor, MemorySegment out) {
        int bits = 8 * bytes(tensor.dtype());
        long size = Arrays.stream(tensor.shape()).reduce(bits / 8, Math::multiplyExact);
        // The library reads as many bytes as the shape says.
        if (size != tensor.data().length) {
            throw new IllegalArgumentException("a tensor " + tensor.dtype() + " " + Arrays.toString(tensor.shape())
                    + " has " + size + " bytes, but " + tensor.data().length + " are given");
        }
        int code = switch (tensor.dtype().charAt(0)) {
            case 'u' -> 1;
            case 'f' -> 2;
            case 'b' -> 6;
            default -> 0;
        };
        MemorySegment dtype = own.allocate(DTYPE);
        dtype.set(JAVA_BYTE, 0, (byte) code);
        dtype.set(JAVA_BYTE, 1, (byte) bits);
        dtype.set(JAVA_SHORT, 2, (short) 1);
        MemorySegment data = own.allocateFrom(JAVA_BYTE, tensor.data());
        MemorySegment shape = own.allocateFrom(JAVA_LONG, tensor.shape());
        check(TENSOR_NEW, data, dtype, shape, (long) tensor.shape().length, out);
    }

    /** Copies a tensor of the library. */
    private static Tensor take(Arena own, MemorySegment value) {
        int most = 32;
        MemorySegment dtype = own.allocate(DTYPE);
        MemorySegment shape = own.allocate(JAVA_LONG, most);
        MemorySegment axes = own.allocateFrom(JAVA_LONG, most);
        MemorySegment data = own.allocate(ADDRESS);
        MemorySegment bytes = own.allocate(JAVA_LONG);
        check(TENSOR_VIEW, value, dtype, shape, axes, data, bytes);
        long count = axes.get(JAVA_LONG, 0);
        if (count > most) {
            throw new IllegalStateException("a tensor of " + count + " axes; this class takes at most " + most);
        }
        int bits = dtype.get(JAVA_BYTE, 1);
        String name = switch (dtype.get(JAVA_BYTE, 0)) {
            case 0 -> "i" + bits;
            case 1 -> "u" + bits;
            case 2 -> "f" + bits;
            default -> "bool";
        };
        long[] lengths = shape.asSlice(0, count * Long.BYTES).toArray(JAVA_LONG);
        byte[] elements = data.get(ADDRESS, 0).reinterpret(bytes.get(JAVA_LONG, 0)).toArray(JAVA_BYTE);
        return new Tensor(name, lengths, elements);
    }
}
