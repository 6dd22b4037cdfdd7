/** Resolves names of API objects to ids in command lines. */
import { Argument, Option } from 'commander';
import type { Checkpoint } from '../../contracts/index.js';
import type { Zerofleet } from '../typescript/index.js';
import { CliError, EXIT } from './context.js';

/** Kind of object that an argument or option refers to; `source` is a job or a checkpoint. */
export type Kind = keyof typeof LISTS | 'checkpoint' | 'source';

interface Named {
  id: string;
  name: string;
  /** Description to choose among several. */
  about: string;
}

/** Filter of a list; all objects without one. `limit` is the page size. */
interface Filter {
  name?: string;
  id_prefix?: string;
  limit: number;
}

interface List {
  /** Prefix of its ids. */
  prefix: string;
  /** Command that lists the objects. */
  command: string;
  /** Lists objects, newest first. */
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
  sweep: {
    prefix: 'swp_',
    command: 'zerofleet sweeps',
    list: ({ sweeps }, filter) =>
      each(sweeps.list(filter), ({ id, name, state }) => ({ id, name, about: state })),
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
export const WHOLE_ID = /^[a-z]+_[0-9A-HJKMNP-TV-Z]{26}$/;
/** Part of an id after the prefix of its kind. */
const PART_OF_ID = /^[0-9A-HJKMNP-TV-Z]{0,26}$/;
const MAX_SHOWN = 5;

const HELP: Readonly<Record<Kind, string>> = {
  job: 'name, id or id prefix',
  dataset: 'name, id or id prefix',
  model: 'name, id or id prefix',
  key: 'name, id or id prefix',
  sweep: 'name, id or id prefix',
  webhook: 'URL, id or id prefix',
  checkpoint: 'id or id prefix; JOB for its newest checkpoint, JOB@STEP for the one after that step',
  source: 'a job, or a checkpoint as JOB@STEP or id',
};

/** An argument that accepts names; the command gets the id. */
export class NamedArgument extends Argument {
  constructor(
    readonly kind: Kind,
    description = HELP[kind],
  ) {
    super(kind === 'source' ? '<job-or-checkpoint>' : `<${kind}>`, description);
  }
}

/** An option that accepts names; the command gets the id. */
export class NamedOption extends Option {
  constructor(
    readonly kind: Kind,
    flags: string,
    description: string,
  ) {
    super(flags, description);
  }
}

/** Resolves a name, id or id prefix to an id. @throws CliError when nothing or more than one object matches */
export async function findId(client: Zerofleet, kind: Kind, text: string): Promise<string> {
  // A job stands for its newest checkpoint.
  if (WHOLE_ID.test(text) && !(kind === 'checkpoint' && text.startsWith(LISTS.job.prefix))) return text;
  if (kind === 'checkpoint') return findCheckpoint(client, text);
  if (kind !== 'source') return findListed(client, kind, text);
  const isCheckpoint = text.startsWith(CHECKPOINT_PREFIX) || /@\d+$/.test(text);
  return isCheckpoint ? findCheckpoint(client, text) : findListed(client, 'job', text);
}

/** Names of the newest objects, for shell completion. */
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
  // One more than shown, to detect that there are more.
  const find = (by: Omit<Filter, 'limit'>) =>
    firstOf(list(client, { ...by, limit: MAX_SHOWN + 1 }), MAX_SHOWN + 1);
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
  const shown = found.slice(0, MAX_SHOWN).map(({ id, name, about }) => `  ${id}  ${name}  ${about}`);
  const rest = found.length > MAX_SHOWN ? ['  and more'] : [];
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

/** Searches the checkpoints of each job, because the API has no search by id prefix. */
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

/** Command that lists objects with ids of this kind; undefined for an unknown kind. */
export function listingOf(idKind: string): string | undefined {
  if (`${idKind}_` === CHECKPOINT_PREFIX) return 'zerofleet checkpoints JOB';
  return Object.values(LISTS).find(({ prefix }) => prefix === `${idKind}_`)?.command;
}
