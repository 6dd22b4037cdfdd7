import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** `up`: from the client to the server, `down`: back. */
type CutDirection = 'up' | 'down';

interface CutProxy {
  /** `http://127.0.0.1:PORT` */
  readonly endpoint: string;
  /**
   * Resets the connection in mid-stream after `afterBytes` bytes in `direction`; then the counting restarts,
   * `times` times in all. The bytes before the reset still arrive.
   */
  cut(direction: CutDirection, afterBytes: number, times: number): void;
  /** Flips one bit of the byte after the next `afterBytes` of the client, once. */
  flip(afterBytes: number): void;
  /** Number of reset connections. */
  readonly cuts: number;
  close(): Promise<void>;
}

interface Plan {
  direction: CutDirection;
  afterBytes: number;
  passed: number;
  timesLeft: number;
}

/** Flips one bit of a stream. */
class BitFlip {
  private after: number | null = null;

  arm(afterBytes: number): void {
    this.after = afterBytes;
  }

  /** Flips the bit in place if the bytes contain its position. */
  apply(bytes: Buffer): void {
    if (this.after === null) return;
    const byte = bytes[this.after];
    if (byte !== undefined) bytes[this.after] = byte ^ 1;
    this.after = byte === undefined ? this.after - bytes.length : null;
  }
}

/** Starts a TCP proxy to `host:port` that can break connections, or flip bits, at a chosen byte. */
export async function startCutProxy(host: string, port: number): Promise<CutProxy> {
  const sockets = new Set<Socket>();
  let plan: Plan | null = null;
  const flips = new BitFlip();
  let cuts = 0;

  function forward(from: Socket, to: Socket, direction: CutDirection): void {
    sockets.add(from);
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
    from.on('error', () => undefined);
    from.on('data', (bytes: Buffer) => {
      const active = plan?.direction === direction && plan.timesLeft > 0 ? plan : null;
      if (!active || active.passed + bytes.length <= active.afterBytes) {
        if (active) active.passed += bytes.length;
        to.write(bytes);
        return;
      }
      to.write(bytes.subarray(0, active.afterBytes - active.passed));
      active.passed = 0;
      active.timesLeft -= 1;
      cuts += 1;
      // The client sees a reset, not an orderly close.
      (direction === 'up' ? from : to).resetAndDestroy();
      (direction === 'up' ? to : from).destroySoon();
    });
  }

  const server = createServer((client) => {
    const upstream = connect(port, host);
    // Registered before the listener that forwards the same bytes.
    client.on('data', (bytes: Buffer) => flips.apply(bytes));
    forward(client, upstream, 'up');
    forward(upstream, client, 'down');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut(direction, afterBytes, times) {
      plan = { direction, afterBytes, passed: 0, timesLeft: times };
    },
    flip: (afterBytes) => flips.arm(afterBytes),
    get cuts() {
      return cuts;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
