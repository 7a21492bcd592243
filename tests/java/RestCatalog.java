import java.net.InetSocketAddress;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;

/**
 * Iceberg's own REST catalog over JdbcCatalog, on the loopback: {@code RestCatalog.java PORT}. Environment variables
 * CATALOG_X_Y__Z are its properties x.y-z.
 */
public class RestCatalog {
  public static void main(String[] arguments) throws Exception {
    Map<String, String> properties =
        System.getenv().entrySet().stream()
            .filter(each -> each.getKey().startsWith("CATALOG_"))
            .collect(Collectors.toMap(each -> property(each.getKey()), Map.Entry::getValue));
    Catalog catalog = CatalogUtil.buildIcebergCatalog("judge", properties, new Configuration(false));
    Server server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])));
    ServletContextHandler context = new ServletContextHandler();
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    server.setHandler(context);
    server.start();
    server.join();
  }

  private static String property(String variable) {
    String name = variable.substring("CATALOG_".length()).toLowerCase();
    return name.replace("__", "-").replace("_", ".");
  }
}
