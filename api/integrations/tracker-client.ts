/** Requests to an experiment tracker, and the error of those that fail. */

import type { AddressPolicy } from '../../platform/outgoing/addresses.js';
import { exchange, type PostFailure, type Resolve } from '../../platform/outgoing/post.js';
import { parsedJson } from '../../platform/parsed-json.js';
import { PROGRAM_VERSION } from '../../platform/process/version.js';
import { Type } from '../../platform/schema.js';
import type { Tracker } from './trackers.js';

/** A run's answer has its params, tags and the last value of each metric. */
const ANSWER_BYTES = 4 * 1024 * 1024;

/** Id or name in an answer that is kept in the job's state and events. The server may be anybody's. */
export const Identifier = Type.String({ minLength: 1, maxLength: 256 });

/** Code that a tracker may give in a refusal; other text is not repeated. */
export const ERROR_CODE = '^[A-Z_]{1,64}$';

interface Refusal {
  status: number;
  error_code: string | null;
  /** A repetition would be refused as well. */
  permanent: boolean;
}

/** A failed request. It has nothing of the answer's text, which may repeat what was sent. */
export class TrackerError extends Error {
  constructor(
    readonly code: PostFailure | 'refused' | 'server_not_configured',
    private readonly refusal: Refusal | null = null,
  ) {
    const { status, error_code } = refusal ?? {};
    super([code, status, error_code].filter(Boolean).join(' '));
  }

  /** Status of the answer, and the tracker's own code if it is an answer of the tracker. */
  get answer(): { status: number | null; error_code: string | null } {
    return { status: this.refusal?.status ?? null, error_code: this.refusal?.error_code ?? null };
  }

  /** A repetition would fail as well. Another API process may already have a server that this one lacks. */
  get isPermanent(): boolean {
    return this.refusal?.permanent ?? this.code === 'address_refused';
  }
}

interface ClientOptions {
  policy: AddressPolicy;
  resolve: Resolve;
  timeoutMs: number;
  signal: AbortSignal;
}

export class TrackerClient {
  constructor(
    readonly tracker: Tracker,
    private readonly options: ClientOptions,
  ) {}

  /**
   * Sends a request, and returns the answer with any status.
   *
   * @param path relative to the URL of the tracker
   * @returns `value` is null if the answer is no JSON
   * @throws TrackerError without an answer
   */
  async send(
    method: 'GET' | 'POST',
    path: string,
    body?: object,
  ): Promise<{ status: number; value: unknown }> {
    const { url, authorization } = this.tracker;
    const { status, text, error } = await exchange(
      `${url.replace(/\/+$/, '')}/${path}`,
      {
        method,
        headers: {
          'user-agent': `zerofleet/${PROGRAM_VERSION}`,
          ...(authorization !== null && { authorization }),
          ...(body && { 'content-type': 'application/json' }),
        },
        body: body ? JSON.stringify(body) : '',
      },
      { ...this.options, answerBytes: ANSWER_BYTES },
    );
    if (error !== null) throw new TrackerError(error);
    return { status, value: parsedJson(text) };
  }
}
