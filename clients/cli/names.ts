/** Resolves names of API objects to ids in command lines. */
import { Argument, Option } from 'commander';
import type { Checkpoint } from '../../contracts/index.js';
import type { Zerofleet } from '../typescript/index.js';
import { CliError, EXIT } from './context.js';

/**
 * Kind of object that an argument or option refers to. `source` is a job or a checkpoint; `weights` is a checkpoint,
 * also that of a job, or a model.
 */
export type Kind = keyof typeof LISTS | 'checkpoint' | 'source' | 'weights';

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

const OF_JOBS = 'JOB for its newest checkpoint, JOB@STEP for the one after that step';

const HELP: Readonly<Record<Kind, string>> = {
  job: 'name, id or id prefix',
  dataset: 'name, id or id prefix',
  model: 'name, id or id prefix',
  key: 'name, id or id prefix',
  sweep: 'name, id or id prefix',
  webhook: 'URL, id or id prefix',
  checkpoint: `id or id prefix; ${OF_JOBS}`,
  source: 'a job, or a checkpoint as JOB@STEP or id',
  weights: `an uploaded model, or a checkpoint: name, id or id prefix; ${OF_JOBS}`,
};

const ARGUMENTS: Partial<Record<Kind, string>> = {
  source: '<job-or-checkpoint>',
  weights: '<model-or-checkpoint>',
};

/** An argument that accepts names; the command gets the id. */
export class NamedArgument extends Argument {
  constructor(
    readonly kind: Kind,
    description = HELP[kind],
  ) {
    super(ARGUMENTS[kind] ?? `<${kind}>`, description);
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
  const needsCheckpoint = kind === 'checkpoint' || kind === 'weights';
  // A job stands for its newest checkpoint.
  if (WHOLE_ID.test(text) && !(needsCheckpoint && text.startsWith(LISTS.job.prefix))) return text;
  if (!needsCheckpoint && kind !== 'source') return findListed(client, [kind], text);
  if (text.startsWith(CHECKPOINT_PREFIX)) return checkpointThatBegins(client, text);
  const [, name = text, step] = /^(.+)@(\d+)$/.exec(text) ?? [];
  const kinds = kind === 'weights' && step === undefined ? (['job', 'model'] as const) : (['job'] as const);
  const id = WHOLE_ID.test(name) ? name : await findListed(client, kinds, name);
  const isWhole = (kind === 'source' && step === undefined) || id.startsWith(LISTS.model.prefix);
  return isWhole ? id : checkpointOf(client, { id, name }, step);
}

/** Names of the newest objects, for shell completion. */
export function namesOf(client: Zerofleet, kind: Kind, count: number): Promise<Named[]> {
  const { list } = LISTS[kind in LISTS ? (kind as keyof typeof LISTS) : 'job'];
  return firstOf(list(client, { limit: count }), count);
}

async function firstOf(list: AsyncIterable<Named>, count: number): Promise<Named[]> {
  const found: Named[] = [];
  for await (const thing of list) if (found.push(thing) === count) break;
  return found;
}

async function findListed(
  client: Zerofleet,
  kinds: readonly (keyof typeof LISTS)[],
  text: string,
): Promise<string> {
  // One more than shown, to detect that there are more.
  const find = async (by: (prefix: string) => Omit<Filter, 'limit'> | null) => {
    const found = kinds.map((kind) => {
      const filter = by(LISTS[kind].prefix);
      return filter && firstOf(LISTS[kind].list(client, { ...filter, limit: MAX_SHOWN + 1 }), MAX_SHOWN + 1);
    });
    return (await Promise.all(found)).flatMap((some) => some ?? []);
  };
  const begin = (prefix: string) => (text.startsWith(prefix) ? text : prefix + text);
  const named = await find(() => ({ name: text }));
  const found =
    named.length > 0
      ? named
      : await find((prefix) =>
          PART_OF_ID.test(begin(prefix).slice(prefix.length)) ? { id_prefix: begin(prefix) } : null,
        );
  const commands = kinds.map((kind) => LISTS[kind].command).join(' and ');
  const none = `no ${kinds.join(' or ')} is named ${text}, and no id begins with it; ${commands} ${kinds.length > 1 ? 'show' : 'shows'} them`;
  return only(found, text, none).id;
}

function only(found: readonly Named[], text: string, none: string): Named {
  const [first, ...others] = found;
  if (first === undefined) throw new CliError(none, EXIT.failed);
  if (others.length === 0) return first;
  const shown = found.slice(0, MAX_SHOWN).map(({ id, name, about }) => `  ${id}  ${name}  ${about}`);
  const rest = found.length > MAX_SHOWN ? ['  and more'] : [];
  throw new CliError([`${text} may be any of these; give an id:`, ...shown, ...rest].join('\n'), EXIT.usage);
}

async function checkpointOf(
  client: Zerofleet,
  job: Pick<Named, 'id' | 'name'>,
  step: string | undefined,
): Promise<string> {
  for await (const { id, step: done } of client.jobs.checkpoints(job.id))
    if (step === undefined || done === Number(step)) return id;
  const which = step === undefined ? 'no checkpoint yet' : `no checkpoint after step ${step}`;
  throw new CliError(`${job.name} has ${which}; zerofleet checkpoints ${job.name} shows them`, EXIT.failed);
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
