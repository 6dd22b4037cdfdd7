/**
 * Imported before the API server, also into its threads: the process dies when it is about to deliver an attempt to the
 * queue. For crash-before-queue.test.ts.
 */
import { Socket } from 'node:net';

/** A Redis command by which BullMQ adds a job: its keys are those of a queue, and its arguments hold the attempt. */
const isDelivery = (command: string) => command.includes(':wait\r\n') && command.includes('"job_id":"job_');

const { write } = Socket.prototype;
Socket.prototype.write = function (this: Socket, ...args: Parameters<typeof write>) {
  if (isDelivery(String(args[0]))) process.kill(process.pid, 'SIGKILL');
  return write.apply(this, args);
} as typeof write;
