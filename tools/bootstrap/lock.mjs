import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { root } from './paths.mjs';

/**
 * Runs `work` with a lock: one process per name in this checkout at a time, others wait. The lock is a listening socket
 * without a file (Linux), which the kernel closes with its process, so it cannot become stale. Other systems have no
 * lock.
 * @param {string} name
 * @param {() => Promise<T>} work
 * @param {() => void} [onWait] called once if another process has the lock
 * @returns {Promise<T>}
 * @template T
 */
export async function withLock(name, work, onWait = () => {}) {
  if (process.platform !== 'linux') return work();
  const checkout = createHash('sha256').update(root).digest('hex').slice(0, 16);
  const server = await hold(`\0zerofleet-${name}-${checkout}`, onWait);
  try {
    return await work();
  } finally {
    for (const waiting of server.waiting) waiting.destroy();
    server.close();
  }
}

async function hold(address, onWait) {
  for (let reported = false; ; ) {
    const server = createServer();
    server.waiting = new Set();
    server.on('connection', (socket) => server.waiting.add(socket.on('error', () => {})));
    try {
      await once(server.listen(address), 'listening');
      return server.unref();
    } catch (error) {
      if (error.code !== 'EADDRINUSE') throw error;
    }
    if (!reported) onWait();
    reported = true;
    await closed(address);
  }
}

/** Resolves when the process that listens there has closed its socket. */
function closed(address) {
  return new Promise((resolve) => {
    connect(address)
      .on('close', resolve)
      .on('error', () => {})
      .resume();
  });
}
