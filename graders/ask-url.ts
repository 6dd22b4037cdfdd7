import { setTimeout as sleep } from 'node:timers/promises';
import type { GradeError } from '../contracts/index.js';
import type { AddressPolicy } from '../platform/outgoing/addresses.js';
import { exchange, type Resolve } from '../platform/outgoing/post.js';
import { parsedJson } from '../platform/parsed-json.js';
import { PROGRAM_VERSION } from '../platform/process/version.js';
import { GraderFault } from './grader.js';

export interface AskOptions {
  policy: AddressPolicy;
  resolve: Resolve;
  /** Timeout of one attempt. */
  timeout_ms: number;
  /** Waits between attempts. */
  retry_delays_ms: readonly number[];
}

/** A question to a URL. */
interface Question {
  /** The one that answers, for messages. */
  whom: string;
  url: string;
  body: string;
  /** Headers of each attempt. */
  headers(): Record<string, string>;
  /** Maximum length of the answer, which this thread parses. */
  answer_bytes: number;
  /** Codes of no answer, and of a refusal. */
  codes: { unavailable: GradeError['code']; refused: GradeError['code'] };
}

/**
 * Posts JSON and returns the answer; null for one that is not JSON. Failures that may pass are retried.
 * @throws GraderFault; the signal's reason
 */
export async function askUrl(question: Question, options: AskOptions, signal: AbortSignal): Promise<unknown> {
  for (let attempt = 0; ; attempt += 1) {
    const result = await send(question, options, signal);
    if ('text' in result) return parsedJson(result.text);
    const delay = options.retry_delays_ms[attempt];
    if (!result.isTransient || delay === undefined) throw result.fault;
    await sleep(delay, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

type Result = { text: string } | { fault: GraderFault; isTransient: boolean };

async function send(
  { whom, url, body, headers, answer_bytes: answerBytes, codes }: Question,
  { policy, resolve, timeout_ms: timeoutMs }: AskOptions,
  signal: AbortSignal,
): Promise<Result> {
  const { status, text, error } = await exchange(
    url,
    {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': `zerofleet/${PROGRAM_VERSION}`,
        ...headers(),
      },
      body,
    },
    { policy, resolve, timeoutMs, answerBytes, signal },
  );
  signal.throwIfAborted();
  if (error !== null) {
    const isTransient = error !== 'address_refused' && error !== 'protocol_error';
    return { fault: new GraderFault(codes.unavailable, `${whom} gave no answer: ${error}`), isTransient };
  }
  if (status >= 200 && status <= 299) return { text };
  const isTransient = status >= 500 || status === 429 || status === 408;
  return { fault: new GraderFault(codes.refused, `${whom} answered with status ${status}`), isTransient };
}
