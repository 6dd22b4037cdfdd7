import type { Page } from '../../contracts/index.js';
import { Check, type Static, type TSchema, Type } from '../../platform/schema.js';
import { Refusal } from './errors.js';

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 10_000;
/** Largest page of this server's own lists. */
const OWN_LIMIT = 100;

/** Query of a list, of which the official client types the parameters. */
export interface ListParams {
  after?: string;
  limit?: string;
}

interface List<T> {
  object: 'list';
  data: T[];
  first_id: string | null;
  last_id: string | null;
  has_more: boolean;
}

export interface PageQuery {
  after?: string;
  limit: number;
}

/** Reads a page of a list, over as many reads of `OWN_LIMIT` entries as the limit needs. */
export async function listOf<T, U extends { id: string }>(
  params: ListParams,
  read: (page: PageQuery) => Promise<Page<T>>,
  translate: (entry: T) => U,
): Promise<List<U>> {
  const limit = limitOf(params);
  const found: T[] = [];
  let after: string | null = params.after ?? null;
  do {
    const left = Math.min(limit - found.length, OWN_LIMIT);
    const page: Page<T> = await read({ ...(after !== null && { after }), limit: left });
    found.push(...page.data);
    after = page.next_cursor;
  } while (after !== null && found.length < limit);
  const data = found.map(translate);
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: after !== null,
  };
}

/** Error for an `after` that names no entry of the list. */
export function unknownCursor(after: string | undefined): Refusal {
  const message = `there is no ${after} in this list; begin anew, without after`;
  return new Refusal(400, 'invalid_parameter', 'after', message);
}

function limitOf({ limit: text = String(DEFAULT_LIMIT) }: ListParams): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw new Refusal(400, 'invalid_parameter', 'limit', `limit must be an integer between 1 and ${MAX_LIMIT}`);
}

/** Returns the parser of a body. @throws (the parser) Refusal naming the first wrong parameter */
export function parserOf<T extends TSchema>(schema: T): (body: unknown) => Static<T> {
  const check = new Check(schema);
  check.compile();
  return (body) => {
    if (check.fits(body)) return body;
    const [problem = ''] = check.problems();
    const missing = /required property '(\w+)'/.exec(problem)?.[1];
    const path = [...(problem.split(' ', 1)[0] ?? '').split('/'), missing ?? ''].filter(
      (part) => part !== '',
    );
    const param = path.join('.') || null;
    const reason = missing === undefined ? problem.replace(/^\/\S* */, '') : 'is missing';
    throw new Refusal(400, 'invalid_parameter', param, `${param ?? 'the body'} ${reason}`);
  };
}

export const nullable = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
export const secondsOf = (time: string): number => Math.floor(Date.parse(time) / 1000);
