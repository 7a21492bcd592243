import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.gson.Gson;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** Reads JSON values and writes each again: WriteJson LIBRARY. Framed as tests/java/AvroJudge.java says. */
public final class WriteJson {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws IOException {
        DataInputStream in = new DataInputStream(System.in);
        DataOutputStream out = new DataOutputStream(System.out);
        for (int schemas = in.readInt(); schemas > 0; schemas--) {
            bytes(in);
            for (int values = in.readInt(); values > 0; values--) {
                byte[] written = written(arguments[0], bytes(in));
                out.writeInt(written.length);
                out.write(written);
            }
        }
        out.flush();
    }

    private static byte[] bytes(DataInputStream in) throws IOException {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return bytes;
    }

    private static byte[] written(String library, byte[] value) throws IOException {
        Object plain = MAPPER.readValue(value, Object.class);
        return switch (library) {
            case "jackson" -> MAPPER.writeValueAsBytes(plain);
            case "jackson-indented" -> MAPPER.writerWithDefaultPrettyPrinter().writeValueAsBytes(plain);
            case "gson" -> new Gson().newBuilder().serializeNulls().create().toJson(plain)
                .getBytes(StandardCharsets.UTF_8);
            default -> throw new IllegalArgumentException(library);
        };
    }
}
