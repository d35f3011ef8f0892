// A client that may do everything a decent one does not: half a header, a body that lies about its
// length, one byte now and then.

import { once } from 'node:events';
import net from 'node:net';

import { waitUntil, seconds } from './waiting.mjs';

export class RawConnection {
  bytes = Buffer.alloc(0);
  closed = false;

  constructor(socket) {
    this.socket = socket;
    this.socket.on('data', (data) => (this.bytes = Buffer.concat([this.bytes, data])));
    this.socket.on('error', () => {});  // A reset is one of the ways to close.
    this.socket.on('close', () => (this.closed = true));
  }

  static async open(service) {
    const socket = net.connect(service.port, service.host);
    await once(socket, 'connect');
    socket.setNoDelay(true);
    return new RawConnection(socket);
  }

  /** Opens a connection and POSTs JSON on it. */
  static async post(service, where, body, headers = []) {
    const connection = await RawConnection.open(service);
    const text = JSON.stringify(body);
    connection.send(
      [
        `POST ${where} HTTP/1.1`,
        'Host: test',
        'Content-Type: application/json',
        `Content-Length: ${Buffer.byteLength(text)}`,
        ...headers,
        '',
        text,
      ].join('\r\n'),
    );
    return connection;
  }

  send(text) {
    if (!this.closed) this.socket.write(text);
  }

  destroy() {
    this.socket.destroy();
  }

  get text() {
    return this.bytes.toString('utf8');
  }

  /** Waits until what has arrived contains `part`. */
  async receives(part, timeout = seconds(20)) {
    await waitUntil(`"${part}" arrives`, () => this.text.includes(part), timeout);
  }

  async closes(timeout = seconds(20)) {
    await waitUntil('the connection closes', () => this.closed, timeout);
  }

  /** Takes the next whole answer off what has arrived; it has Content-Length or no body. */
  async response(timeout = seconds(20)) {
    return waitUntil('an answer arrives', () => this.#takeResponse(), timeout);
  }

  /** Takes the first bytes that arrive and no more, until `socket.resume()`. */
  async pauseAfterFirstBytes() {
    await once(this.socket, 'data');
    this.socket.pause();
  }

  /** The body of the one chunked answer of a connection that has closed. */
  unchunkedBody() {
    let rest = this.bytes.subarray(this.bytes.indexOf('\r\n\r\n') + 4);
    const parts = [];
    for (;;) {
      const end = rest.indexOf('\r\n');
      const size = end < 0 ? 0 : parseInt(rest.subarray(0, end).toString('latin1'), 16);
      if (!size) return Buffer.concat(parts).toString('utf8');
      parts.push(rest.subarray(end + 2, end + 2 + size));
      rest = rest.subarray(end + 2 + size + 2);
    }
  }

  #takeResponse() {
    const end = this.bytes.indexOf('\r\n\r\n');
    if (end < 0) return null;
    const [line, ...fields] = this.bytes.subarray(0, end).toString('latin1').split('\r\n');
    const headers = Object.fromEntries(
      fields.map((field) => {
        const colon = field.indexOf(':');
        return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
      }),
    );
    const length = Number(headers['content-length'] ?? 0);
    if (this.bytes.length < end + 4 + length) return null;
    const body = this.bytes.subarray(end + 4, end + 4 + length).toString('utf8');
    this.bytes = this.bytes.subarray(end + 4 + length);
    return { status: Number(line.split(' ')[1]), headers, body };
  }
}
