import { randomUUID } from 'node:crypto';
import type { WebhookGrader } from '../contracts/index.js';
import { signedHeaders } from '../platform/outgoing/signature.js';
import { Check, Type } from '../platform/schema.js';
import { type AskOptions, askUrl } from './ask-url.js';
import { type GradedItem, GraderFault, type GraderOutside } from './grader.js';

const Answer = new Check(Type.Object({ score: Type.Number() }));
const ANSWER_BYTES = 64 * 1024;
const CODES = { unavailable: 'webhook_unavailable', refused: 'webhook_refused' } as const;

/**
 * Asks the URL of a webhook. All attempts have the same `webhook-id`, by which the receiver knows a repetition.
 * @throws GraderFault; the signal's reason
 */
export async function askWebhook(
  { name, webhook }: WebhookGrader,
  graded: GradedItem,
  { findWebhook }: Pick<GraderOutside, 'findWebhook'>,
  options: AskOptions,
  signal: AbortSignal,
): Promise<number> {
  const target = await findWebhook(webhook);
  if (target === null)
    throw new GraderFault('webhook_unavailable', `the project has no enabled webhook ${webhook}`);
  const { url, secrets } = target;
  const id = `msg_${randomUUID()}`;
  const now = new Date().toISOString();
  const body = JSON.stringify({ type: 'grader.asked', timestamp: now, data: { grader: name, ...graded } });
  const headers = () => ({
    ...signedHeaders(secrets, { id, timestamp: Math.floor(Date.now() / 1000), body }),
  });
  const question = { whom: 'the webhook', url, body, headers, answer_bytes: ANSWER_BYTES, codes: CODES };
  const answer = await askUrl(question, options, signal);
  if (Answer.fits(answer) && Number.isFinite(answer.score)) return answer.score;
  const message = 'the webhook must answer with a JSON object whose field score is a number';
  throw new GraderFault('webhook_answer_invalid', message);
}
