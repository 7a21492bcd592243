import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/** Reads values by a schema, and writes each again. For each value: its bytes, or a length of -1 if it can't be read. */
public final class AvroJudge {
    public static void main(String[] arguments) throws IOException {
        DataInputStream in = new DataInputStream(System.in);
        DataOutputStream out = new DataOutputStream(System.out);
        for (int schemas = in.readInt(); schemas > 0; schemas--) {
            Schema schema = new Schema.Parser().parse(new String(bytes(in), "UTF-8"));
            for (int values = in.readInt(); values > 0; values--) {
                byte[] written = written(schema, bytes(in));
                out.writeInt(written == null ? -1 : written.length);
                if (written != null) {
                    out.write(written);
                }
            }
        }
        out.flush();
    }

    private static byte[] bytes(DataInputStream in) throws IOException {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return bytes;
    }

    private static byte[] written(Schema schema, byte[] value) {
        try {
            Object datum = new GenericDatumReader<Object>(schema)
                .read(null, DecoderFactory.get().binaryDecoder(value, null));
            ByteArrayOutputStream output = new ByteArrayOutputStream();
            BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(output, null);
            new GenericDatumWriter<Object>(schema).write(datum, encoder);
            encoder.flush();
            return output.toByteArray();
        } catch (Exception | OutOfMemoryError error) {
            return null;
        }
    }
}
