/** A W&B server for tests, in memory: what forwarding uses, and what W&B's own client asks for besides. */
import type { WandbStream } from '../wandb-client.js';
import { Refusal, type SeenRun, type TrackerRequest, type TrackerStore } from './server.js';

const STATUSES: Readonly<Record<number, SeenRun['status']>> = { 0: 'FINISHED', 1: 'FAILED', 255: 'KILLED' };

export interface StoredWandbRun {
  /** `ENTITY/PROJECT/ID` */
  path: string;
  displayName: string | null;
  config: Record<string, { value: unknown }>;
  tags: string[];
  /** Lines of each file by their places. */
  files: Record<string, string[]>;
  /** Exit code, once the run has ended. */
  exitcode: number | null;
  /** Requests of the run that had no content. */
  beats: number;
}

interface Variables {
  name?: string;
  entity?: string | null;
  project?: string;
  displayName?: string | null;
  config?: string | null;
  tags?: string[] | null;
  files?: string[];
}

export class WandbStore implements TrackerStore {
  readonly runs: StoredWandbRun[] = [];
  /** Entity of runs that name none. */
  defaultEntity = 'somebody';

  seen(): SeenRun[] {
    return this.runs.map((run) => ({
      status: run.exitcode === null ? 'RUNNING' : (STATUSES[run.exitcode] ?? 'FAILED'),
      steps: rowsOf(run).flatMap((row) => ('loss' in row ? [Number(row._step)] : [])),
      step: Number(summaryOf(run)._step ?? 0),
    }));
  }

  nameOf({ path, body }: TrackerRequest): string {
    if (path === 'graphql') return String(body.operationName);
    return body.complete === true ? 'file_stream complete' : path;
  }

  errorBody(code: string): object {
    return { errors: [{ message: 'as the test asked', extensions: { code } }] };
  }

  handle({ path, body }: TrackerRequest): object {
    const [, run] = /^files\/([^/]+\/[^/]+\/[^/]+)\/file_stream$/.exec(path) ?? [];
    if (run !== undefined) return this.write(decodeURIComponent(run), body as WandbStream);
    if (path !== 'graphql') throw new Refusal(404, 'NOT_FOUND');
    return { data: this.query(String(body.query), (body.variables ?? {}) as Variables) };
  }

  private query(query: string, variables: Variables): object {
    const { name = '', project = '' } = variables;
    const path = `${variables.entity ?? this.defaultEntity}/${project}/${name}`;
    const run = this.runs.find((each) => each.path === path);
    if (query.includes('upsertBucket(')) return { upsertBucket: this.upsert(run, path, variables) };
    if (query.includes('model(')) return { model: run ? { bucket: statusOf(run) } : null };
    // W&B's client asks for these.
    if (query.includes('viewer'))
      return { viewer: { id: 'u', entity: this.defaultEntity, username: 'me', flags: '{}' } };
    return { createRunFiles: { runID: 'r', uploadHeaders: [], files: [] } };
  }

  private upsert(found: StoredWandbRun | undefined, path: string, given: Variables): object {
    const run: StoredWandbRun = found ?? {
      ...{ path, displayName: null, config: {}, tags: [], files: {}, exitcode: null, beats: 0 },
    };
    if (!found) this.runs.push(run);
    run.displayName = given.displayName ?? run.displayName;
    run.tags = given.tags ?? run.tags;
    run.config = given.config ? JSON.parse(given.config) : run.config;
    run.exitcode = null;
    const [entity, project, name] = path.split('/');
    const owner = { id: 'p', name: project, entity: { id: 'e', name: entity } };
    const { displayName } = run;
    const { historyLineCount } = statusOf(run);
    return { bucket: { id: path, name, displayName, historyLineCount, project: owner }, inserted: !found };
  }

  private write(path: string, { files = {}, complete, exitcode }: WandbStream): object {
    const run = this.runs.find((each) => each.path === path);
    if (!run) throw new Refusal(404, 'NOT_FOUND');
    for (const [name, { offset, content }] of Object.entries(files)) {
      const lines = run.files[name] ?? [];
      run.files[name] = lines;
      if (offset > lines.length) throw new Refusal(400, 'GAP');
      lines.splice(offset, content.length, ...content);
    }
    if (Object.keys(files).length === 0) run.beats += 1;
    run.exitcode = complete ? (exitcode ?? null) : null;
    return {};
  }
}

/** JSON in which numbers may be `NaN`, which is read as null. */
function read(line: string): Record<string, unknown> {
  return JSON.parse(line.replaceAll(/:(-?Infinity|NaN)/g, ':null'));
}

export function rowsOf({ files }: StoredWandbRun): Record<string, unknown>[] {
  return (files['wandb-history.jsonl'] ?? []).map(read);
}

export function summaryOf({ files }: StoredWandbRun): Record<string, unknown> {
  return read(files['wandb-summary.json']?.at(-1) ?? '{}');
}

function statusOf({ path, displayName, config, tags, files }: StoredWandbRun) {
  const history = files['wandb-history.jsonl'] ?? [];
  return {
    id: path,
    name: path.split('/').at(-1),
    displayName,
    config: JSON.stringify(config),
    tags,
    summaryMetrics: files['wandb-summary.json']?.at(-1) ?? '{}',
    historyLineCount: history.length,
    historyTail: JSON.stringify(history.slice(-1)),
    eventsLineCount: 0,
    eventsTail: '[]',
    logLineCount: 0,
    wandbConfig: JSON.stringify(config._wandb?.value ?? {}),
  };
}
