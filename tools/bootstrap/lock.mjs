import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { root } from './paths.mjs';

/**
 * Runs `work` while no other process does so under the same name in this checkout; waits for one that does. The lock is a
 * listening socket without a file (Linux), which the kernel closes with its process: it can't be left behind. Elsewhere
 * nothing is locked.
 * @param {string} name
 * @param {() => Promise<T>} work
 * @param {() => void} [onWait] called once when somebody else has the lock
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
  for (let told = false; ; ) {
    const server = createServer();
    server.waiting = new Set();
    server.on('connection', (socket) => server.waiting.add(socket.on('error', () => {})));
    try {
      await once(server.listen(address), 'listening');
      return server.unref();
    } catch (error) {
      if (error.code !== 'EADDRINUSE') throw error;
    }
    if (!told) onWait();
    told = true;
    await closed(address);
  }
}

/** Resolves when the process that listens there has stopped to. */
function closed(address) {
  return new Promise((resolve) => {
    connect(address)
      .on('close', resolve)
      .on('error', () => {})
      .resume();
  });
}
