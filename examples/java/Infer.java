import java.io.IOException;

/**
 * Runs a compiled model: Infer ARTIFACT [DEVICE]
 *
 * <p>Reads the bytes of the model's only input from standard input, runs the model on DEVICE (fsim if none is named), and
 * writes the bytes of its first output to standard output.
 */
public final class Infer {
    private Infer() {}

    public static void main(String[] args) throws IOException {
        if (args.length < 1) {
            System.err.println("usage: Infer ARTIFACT [DEVICE]");
            System.exit(2);
        }
        String device = args.length > 1 ? args[1] : "fsim";
        try (Tilewright.Model model = new Tilewright.Model(args[0], device)) {
            Tilewright.Description input = model.inputs().get(0);
            byte[] data = System.in.readAllBytes();
            Tilewright.Tensor tensor = new Tilewright.Tensor(input.dtype(), input.shape(), data);
            System.out.write(model.run(tensor).get(0).data());
            System.out.flush();
        } catch (IllegalStateException | IllegalArgumentException error) {
            System.err.println(error.getMessage());
            System.exit(1);
        }
    }
}
