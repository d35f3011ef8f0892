// A TCP proxy whose connections a test can cut: what a broken network does between two processes.

import net from 'node:net';

export class CuttableProxy {
  #server;
  #pairs = new Set();

  /** Listens on a free port, and passes everything on to the host and port of `url`. */
  static async to(url) {
    const proxy = new CuttableProxy();
    const { hostname, port } = new URL(url);
    proxy.#server = net.createServer((near) => {
      const far = net.connect({ host: hostname, port: Number(port) });
      const pair = { near, far };
      proxy.#pairs.add(pair);
      const end = () => {
        proxy.#pairs.delete(pair);
        near.destroy();
        far.destroy();
      };
      for (const socket of [near, far]) {
        socket.setNoDelay(true);
        socket.on('error', end);
        socket.on('close', end);
      }
      near.pipe(far);
      far.pipe(near);
    });
    await new Promise((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    proxy.url = `http://127.0.0.1:${proxy.#server.address().port}`;
    return proxy;
  }

  /** Resets every connection there is; new ones are passed on as before. */
  cut() {
    for (const { near, far } of this.#pairs) {
      near.resetAndDestroy();
      far.resetAndDestroy();
    }
  }

  close() {
    this.cut();
    this.#server.close();
  }
}
