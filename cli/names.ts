/** Things of the API by name: whoever types a command need not type an id. */
import { Argument, Option } from 'commander';
import type { Zerofleet } from '../client/index.js';
import type { Checkpoint } from '../contracts/index.js';
import { CliError, EXIT } from './context.js';

/** What an argument or an option names; `source` is a job or a checkpoint. */
export type Kind = keyof typeof LISTS | 'checkpoint' | 'source';

interface Named {
  id: string;
  name: string;
  /** For people who choose among several. */
  about: string;
}

/** Of the things that a list shows; all of them without one. `limit` is of one request. */
interface Filter {
  name?: string;
  id_prefix?: string;
  limit: number;
}

interface List {
  /** What its ids begin with. */
  prefix: string;
  /** The command that shows them. */
  command: string;
  /** Newest first. */
  list(client: Zerofleet, filter: Filter): AsyncIterable<Named>;
}

async function* each<T>(list: AsyncIterable<T>, named: (thing: T) => Named): AsyncGenerator<Named> {
  for await (const thing of list) yield named(thing);
}

const LISTS = {
  job: {
    prefix: 'job_',
    command: 'zerofleet list',
    list: ({ jobs }, filter) =>
      each(jobs.list(filter), ({ id, name, state }) => ({ id, name, about: state })),
  },
  dataset: {
    prefix: 'ds_',
    command: 'zerofleet datasets',
    list: ({ datasets }, filter) =>
      each(datasets.list(filter), ({ id, name, format }) => ({ id, name, about: format })),
  },
  model: {
    prefix: 'mdl_',
    command: 'zerofleet models',
    list: ({ models }, filter) =>
      each(models.list(filter), ({ id, name, model_type }) => ({
        id,
        name,
        about: model_type ?? 'tokenizer',
      })),
  },
  key: {
    prefix: 'key_',
    command: 'zerofleet keys',
    list: ({ apiKeys }, filter) =>
      each(apiKeys.list(filter), ({ id, name, scopes }) => ({ id, name, about: scopes.join(' ') })),
  },
  webhook: {
    prefix: 'wh_',
    command: 'zerofleet webhooks',
    list: ({ webhooks }, { name: url, ...filter }) =>
      each(webhooks.list({ ...filter, ...(url !== undefined && { url }) }), ({ id, url }) => ({
        id,
        name: url,
        about: url,
      })),
  },
} as const satisfies Record<string, List>;

const CHECKPOINT_PREFIX = 'ckpt_';
const WHOLE_ID = /^[a-z]+_[0-9A-HJKMNP-TV-Z]{26}$/;
/** How an id goes on behind what ids of its kind begin with. */
const PART_OF_ID = /^[0-9A-HJKMNP-TV-Z]{0,26}$/;
const MOST_SHOWN = 5;

const HELP: Readonly<Record<Kind, string>> = {
  job: 'its name, its id, or how its id begins',
  dataset: 'its name, its id, or how its id begins',
  model: 'its name, its id, or how its id begins',
  key: 'its name, its id, or how its id begins',
  webhook: 'its URL, its id, or how its id begins',
  checkpoint: 'its id, or how it begins; JOB for its newest checkpoint, JOB@STEP for the one after that step',
  source: 'a job, or a checkpoint as JOB@STEP or by its id',
};

/** An argument that names something; the command gets its id. */
export class NamedArgument extends Argument {
  constructor(
    readonly kind: Kind,
    description = HELP[kind],
  ) {
    super(kind === 'source' ? '<job-or-checkpoint>' : `<${kind}>`, description);
  }
}

/** An option whose value names something; the command gets its id. */
export class NamedOption extends Option {
  constructor(
    readonly kind: Kind,
    flags: string,
    description: string,
  ) {
    super(flags, description);
  }
}

/**
 * The id of what somebody has named.
 * @throws CliError when there is none of that name, or several
 */
export async function findId(client: Zerofleet, kind: Kind, text: string): Promise<string> {
  if (WHOLE_ID.test(text)) return text;
  if (kind === 'checkpoint') return findCheckpoint(client, text);
  if (kind !== 'source') return findListed(client, kind, text);
  const isCheckpoint = text.startsWith(CHECKPOINT_PREFIX) || /@\d+$/.test(text);
  return isCheckpoint ? findCheckpoint(client, text) : findListed(client, 'job', text);
}

/** Names of the newest things that exist, for a shell that completes them. */
export function namesOf(client: Zerofleet, kind: Kind, count: number): Promise<Named[]> {
  const { list } = LISTS[kind === 'checkpoint' || kind === 'source' ? 'job' : kind];
  return firstOf(list(client, { limit: count }), count);
}

async function firstOf(list: AsyncIterable<Named>, count: number): Promise<Named[]> {
  const found: Named[] = [];
  for await (const thing of list) if (found.push(thing) === count) break;
  return found;
}

async function findListed(client: Zerofleet, kind: keyof typeof LISTS, text: string): Promise<string> {
  const { prefix, command, list } = LISTS[kind];
  // One more than is shown tells that there are more.
  const find = (by: Omit<Filter, 'limit'>) =>
    firstOf(list(client, { ...by, limit: MOST_SHOWN + 1 }), MOST_SHOWN + 1);
  const rest = text.startsWith(prefix) ? text.slice(prefix.length) : text;
  const named = await find({ name: text });
  const found =
    named.length === 0 && PART_OF_ID.test(rest) ? await find({ id_prefix: prefix + rest }) : named;
  return only(found, text, `no ${kind} is named ${text}, and no id begins with it; ${command} shows them`).id;
}

function only(found: readonly Named[], text: string, none: string): Named {
  const [first, ...others] = found;
  if (first === undefined) throw new CliError(none, EXIT.failed);
  if (others.length === 0) return first;
  const shown = found.slice(0, MOST_SHOWN).map(({ id, name, about }) => `  ${id}  ${name}  ${about}`);
  const rest = found.length > MOST_SHOWN ? ['  and more'] : [];
  throw new CliError([`${text} may be any of these; give an id:`, ...shown, ...rest].join('\n'), EXIT.usage);
}

async function findCheckpoint(client: Zerofleet, text: string): Promise<string> {
  if (text.startsWith(CHECKPOINT_PREFIX)) return checkpointThatBegins(client, text);
  const [, name = text, step] = /^(.+)@(\d+)$/.exec(text) ?? [];
  const job = WHOLE_ID.test(name) ? name : await findListed(client, 'job', name);
  for await (const { id, step: done } of client.jobs.checkpoints(job))
    if (step === undefined || done === Number(step)) return id;
  const which = step === undefined ? 'no checkpoint yet' : `no checkpoint after step ${step}`;
  throw new CliError(`${name} has ${which}; zerofleet checkpoints ${name} shows them`, EXIT.failed);
}

/** There is no list of all checkpoints; those of each job are looked through. */
async function checkpointThatBegins(client: Zerofleet, begin: string): Promise<string> {
  const found: Named[] = [];
  for await (const job of client.jobs.list({ limit: 100 })) {
    if (job.latest_checkpoint === null) continue;
    const about = ({ step }: Checkpoint) => `step ${step}`;
    for await (const checkpoint of client.jobs.checkpoints(job.id))
      if (checkpoint.id.startsWith(begin))
        found.push({ id: checkpoint.id, name: job.name || job.id, about: about(checkpoint) });
  }
  return only(found, begin, `no checkpoint's id begins with ${begin}; zerofleet checkpoints JOB shows them`)
    .id;
}

/** The command that shows things whose ids begin so; undefined when nothing has such ids. */
export function listingOf(idKind: string): string | undefined {
  if (`${idKind}_` === CHECKPOINT_PREFIX) return 'zerofleet checkpoints JOB';
  return Object.values(LISTS).find(({ prefix }) => prefix === `${idKind}_`)?.command;
}
