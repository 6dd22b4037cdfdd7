import type { TrackerServer } from '../platform/config/tracker-servers.js';
import { Check, Type } from '../platform/schema.js';
import { type AskOptions, askUrl } from './ask-url.js';
import { GraderFault, type ModelAnswer, type ModelQuestion } from './grader.js';

/** OpenAI-compatible servers by name, with their keys. */
export type ModelServers = ReadonlyMap<string, TrackerServer>;

const text = Type.Union([Type.String(), Type.Null()]);
const Completion = new Check(
  Type.Object({
    choices: Type.Array(
      Type.Object({ message: Type.Object({ content: Type.Optional(text), refusal: Type.Optional(text) }) }),
      { minItems: 1 },
    ),
    usage: Type.Optional(Type.Object({ total_tokens: Type.Integer({ minimum: 0 }) })),
  }),
);
const ANSWER_BYTES = 1024 * 1024;
const CODES = { unavailable: 'model_unavailable', refused: 'model_unavailable' } as const;

/** Asks a model of a configured server. @throws GraderFault; the signal's reason */
export async function askServer(
  name: string,
  { model, messages, max_tokens, temperature, top_p, seed, schema }: ModelQuestion,
  { servers, project, ...options }: AskOptions & { servers: ModelServers; project: string },
  signal: AbortSignal,
): Promise<ModelAnswer> {
  const server = servers.get(name);
  if (server === undefined || !(server.projects?.includes(project) ?? true))
    throw new GraderFault(
      'model_unavailable',
      `the operator has configured no server ${name} for the project (ZEROFLEET_GRADER_CREDENTIALS)`,
    );
  const body = JSON.stringify({
    model,
    messages,
    max_completion_tokens: max_tokens,
    temperature,
    top_p,
    seed,
    response_format: { type: 'json_schema', json_schema: { name: 'score', strict: true, schema } },
  });
  const question = {
    whom: `the server ${name}`,
    url: `${server.url.replace(/\/+$/, '')}/chat/completions`,
    body,
    headers: () => authorizationOf(server),
    answer_bytes: ANSWER_BYTES,
    codes: CODES,
  };
  const answer = await askUrl(question, options, signal);
  if (!Completion.fits(answer))
    throw new GraderFault('model_unavailable', `the server ${name} did not answer with a chat completion`);
  const { content, refusal } = answer.choices[0]?.message ?? {};
  return { text: content ?? '', refusal: refusal ?? null, tokens: answer.usage?.total_tokens ?? 0 };
}

function authorizationOf({ token, username, password }: TrackerServer): Record<string, string> {
  if (token !== undefined) return { authorization: `Bearer ${token}` };
  if (username === undefined || password === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
}
