/** Options that requests for answers have in common. */
import type { SampleRequest } from '../../../contracts/index.js';
import { Type } from '../../../platform/schema.js';
import { seedOf } from '../../../platform/seeds.js';
import { notSupported } from '../errors.js';
import { nullable } from '../pages.js';

/** No limit but the model's context. */
const UNLIMITED = 1_000_000;
const MAX_SEED = 2 ** 31;

/** Tokens of `logit_bias`. */
const MAX_BIASES = 1024;
const penalty = Type.Number({ minimum: -2, maximum: 2 });

export const strict = { additionalProperties: false };
export const tokens = nullable(Type.Integer({ minimum: 1, maximum: UNLIMITED }));

/** Fields of both kinds of requests. */
export const Common = {
  model: Type.String({ minLength: 1, maxLength: 255 }),
  temperature: nullable(Type.Number({ minimum: 0, maximum: 2 })),
  top_p: nullable(Type.Number({ minimum: 0, maximum: 1 })),
  presence_penalty: nullable(penalty),
  frequency_penalty: nullable(penalty),
  logit_bias: nullable(
    Type.Record(Type.String(), Type.Number({ minimum: -100, maximum: 100 }), { maxProperties: MAX_BIASES }),
  ),
  n: nullable(Type.Integer({ minimum: 1, maximum: 16 })),
  seed: nullable(Type.Integer()),
  stop: nullable(
    Type.Union([
      Type.String({ minLength: 1, maxLength: 1000 }),
      Type.Array(Type.String({ minLength: 1, maxLength: 1000 }), { maxItems: 4 }),
    ]),
  ),
  stream: nullable(Type.Boolean()),
  stream_options: nullable(
    Type.Object(
      { include_usage: Type.Optional(Type.Boolean()), include_obfuscation: Type.Optional(Type.Boolean()) },
      strict,
    ),
  ),
  user: nullable(Type.String()),
};

interface CommonBody {
  temperature?: number | null;
  top_p?: number | null;
  presence_penalty?: number | null;
  frequency_penalty?: number | null;
  logit_bias?: Record<string, number> | null;
  n?: number | null;
  seed?: number | null;
  stop?: string | string[] | null;
}

/** Returns the options of a sample. Without a seed one is drawn, as the hosted API does. */
export function samplingOf(
  { temperature, top_p, presence_penalty, frequency_penalty, logit_bias, n, seed, stop }: CommonBody,
  maxTokens: number | null | undefined,
): Omit<SampleRequest, 'prompt' | 'messages' | 'stream' | 'logprobs'> {
  return {
    max_tokens: maxTokens ?? UNLIMITED,
    temperature: temperature ?? 1,
    // The hosted API takes 0, which leaves the most likely token.
    top_p: Math.max(top_p ?? 1, Number.MIN_VALUE),
    presence_penalty: presence_penalty ?? 0,
    frequency_penalty: frequency_penalty ?? 0,
    logit_bias: logit_bias ?? {},
    n: n ?? 1,
    seed: seed == null ? Math.floor(Math.random() * MAX_SEED) : seedOf(BigInt(seed)),
    stop: typeof stop === 'string' ? [stop] : (stop ?? []),
  };
}

/** Refuses parameters whose value is not the one that has no effect. @throws Refusal that names the parameter */
export function requireNeutral(
  body: Readonly<Record<string, unknown>>,
  neutral: Readonly<Record<string, unknown>>,
): void {
  for (const [name, value] of Object.entries(neutral)) {
    const given = body[name];
    if (given === undefined || given === null) continue;
    if (JSON.stringify(given) !== JSON.stringify(value))
      throw notSupported(name, `${name} is not supported; leave it out`);
  }
}
