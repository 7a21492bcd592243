import com.google.protobuf.MessageLite;
import com.google.protobuf.Parser;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.Map;
import producers.Claim;
import producers.OldOrder;
import producers.Order;
import producers.Scattered;

/** Reads messages, a length and a type name and bytes each, and writes them as Java's serializer does. */
public final class Produce {
    private static final Map<String, Parser<? extends MessageLite>> TYPES = Map.of(
        "producers.Order", Order.parser(),
        "producers.OldOrder", OldOrder.parser(),
        "producers.Scattered", Scattered.parser(),
        "producers.Claim", Claim.parser());

    public static void main(String[] arguments) throws IOException {
        DataInputStream in = new DataInputStream(System.in);
        DataOutputStream out = new DataOutputStream(new java.io.BufferedOutputStream(System.out));
        while (true) {
            byte[] name = read(in);
            if (name == null) {
                break;
            }
            byte[] written = TYPES.get(new String(name, "UTF-8")).parseFrom(read(in)).toByteArray();
            out.writeInt(Integer.reverseBytes(written.length));
            out.write(written);
        }
        out.flush();
    }

    private static byte[] read(DataInputStream in) throws IOException {
        byte[] size = in.readNBytes(4);
        if (size.length == 0) {
            return null;
        }
        return in.readNBytes(size[0] & 0xff | (size[1] & 0xff) << 8 | (size[2] & 0xff) << 16 | (size[3] & 0xff) << 24);
    }
}
