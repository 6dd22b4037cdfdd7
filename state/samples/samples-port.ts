/**
 * Requests for samples, from the process that asks (the caller) to a worker of a pool, and the messages of the worker to the caller.
 *
 * A request waits until a worker takes it, whose hold it must renew. A worker that drains returns its requests; those of a worker that
 * stops renewing wait again. The messages of all requests of a caller are one stream, of a bounded number of bytes, which the caller
 * reads.
 */
import type { SampleMessage, SamplePayload } from '../../contracts/index.js';
import type { Unsubscribe } from '../core/subscriptions.js';

export interface SampleRequestInput {
  /** Unique. */
  id: string;
  /** The process that reads the messages. */
  caller: string;
  pool: string;
  /** True if the request named the pool, which must have a worker or a job then. */
  named: boolean;
  payload: SamplePayload;
  /** Time in which the first worker has to take it. */
  wait_ms: number;
}

export interface SampleTaking {
  pool: string;
  /** Unique to the process. */
  worker: string;
  /** Requests that the worker answers at once at most. */
  places: number;
  /** Those that it answers. */
  answered: readonly SamplePayload[];
  hold_ms: number;
  limit: number;
}

export interface TakenSample {
  id: string;
  payload: SamplePayload;
  /** True if no worker has taken it in time. */
  is_late: boolean;
}

export interface ReadMessage {
  position: string;
  /** Of the request. */
  id: string;
  message: SampleMessage;
}

export interface SampleRequests {
  /** @throws ZerofleetError `pool_not_found`; `sample_queue_full` when too many of the pool, the project or the model wait */
  requestSample(request: SampleRequestInput): Promise<void>;
  /**
   * Takes requests for a worker. Projects take turns, and so do the models of a project; none of them gets all places
   * (core/commands/sample.lua).
   */
  takeSamples(taking: SampleTaking): Promise<TakenSample[]>;
  /** Renews the hold on requests. @returns those that the worker has no more, and must not answer */
  renewSamples(pool: string, worker: string, ids: readonly string[], holdMs: number): Promise<string[]>;
  /** Returns a request to the pool. Does nothing when the worker has it no more. */
  releaseSample(id: string, worker: string): Promise<void>;
  /**
   * Tells the caller of a request something. A message with `end` ends the request.
   * @returns 'full', without a change, when the caller has too many unread messages; 'gone' when nobody waits for it, or another worker
   *   has it
   */
  tellSample(id: string, worker: string, message: SampleMessage): Promise<'told' | 'full' | 'gone'>;
  /** Forgets a request that nobody waits for any more. Idempotent. */
  abandonSample(id: string): Promise<void>;
  /**
   * Reads some messages to a caller, at least one if there are any, and removes those up to `after`, which it has read. A caller that
   * does not read for a minute is gone.
   * @param after position of the last message; null before the first one
   */
  readMessages(caller: string, after: string | null): Promise<ReadMessage[]>;
  /** Returns how far each request is. */
  findSamples(ids: readonly string[]): Promise<('waiting' | 'taken' | 'gone')[]>;
  /** Counts the requests of a pool that wait, and those that workers answer. */
  countSamples(pool: string): Promise<{ waiting: number; taken: number }>;
  /** Calls back when a request of the pool begins to wait. */
  watchSamples(pool: string, onChange: () => void): Promise<Unsubscribe>;
  /** Calls back when a caller has a message to read. */
  watchMessages(caller: string, onChange: () => void): Promise<Unsubscribe>;
}
