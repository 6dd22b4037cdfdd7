/** A W&B server for tests, in memory: what forwarding uses, and what W&B's own client asks for besides. */
import { buildSchema, graphqlSync } from 'graphql';
import type { WandbStream } from '../wandb-client.js';
import { Refusal, type SeenRun, type TrackerRequest, type TrackerStore } from './server.js';

const STATUSES: Readonly<Record<number, SeenRun['status']>> = { 0: 'FINISHED', 1: 'FAILED', 255: 'KILLED' };

export interface StoredWandbRun {
  /** `ENTITY/PROJECT/ID` */
  path: string;
  displayName: string | null;
  config: Record<string, { value: unknown }>;
  tags: string[];
  /** Lines of each file by their numbers. */
  files: Record<string, string[]>;
  /** Exit code, once the run has ended. */
  exitcode: number | null;
  /** Requests of the run that had no content. */
  beats: number;
}

/** The part of W&B's schema that both clients use, from the operations of W&B's client. */
const SCHEMA = buildSchema(`
  scalar JSONString
  type Entity { id: ID!, name: String! }
  type Project { id: ID!, name: String!, entity: Entity!, bucket(name: String!, missingOk: Boolean): Run }
  type Run {
    id: ID!, name: String!, displayName: String, description: String, notes: String, sweepName: String, tags: [String!]
    config: JSONString, wandbConfig(keys: [String!]): JSONString, summaryMetrics: JSONString, project: Project
    historyLineCount: Int, historyTail: JSONString, eventsLineCount: Int, eventsTail: JSONString, logLineCount: Int
  }
  input UpsertBucketInput {
    id: String, name: String, modelName: String, entityName: String, groupName: String, displayName: String
    description: String, notes: String, config: JSONString, summaryMetrics: JSONString, tags: [String!], state: String
    commit: String, host: String, debug: Boolean, jobProgram: String, jobRepo: String, jobType: String, sweep: String
  }
  type UpsertBucketPayload { bucket: Run, inserted: Boolean }
  input CreateRunFilesInput { entityName: String!, projectName: String!, runName: String!, files: [String!]! }
  type File { name: String!, uploadUrl: String }
  type CreateRunFilesPayload { runID: ID!, uploadHeaders: [String!]!, files: [File!]! }
  type Team { name: String! }
  type TeamEdge { node: Team }
  type Teams { edges: [TeamEdge!]! }
  type User { id: ID!, entity: String, username: String, email: String, flags: JSONString, teams: Teams }
  type ServerFeature { name: String!, isEnabled: Boolean! }
  type ServerInfo { features: [ServerFeature] }
  type Query { model(name: String, entityName: String): Project, viewer: User, serverInfo: ServerInfo }
  type Mutation {
    upsertBucket(input: UpsertBucketInput!): UpsertBucketPayload
    createRunFiles(input: CreateRunFilesInput!): CreateRunFilesPayload
  }
`);

interface Upsert {
  name: string;
  modelName: string;
  entityName?: string | null;
  displayName?: string | null;
  config?: string | null;
  tags?: string[] | null;
}

interface Query {
  query: string;
  variables?: Record<string, unknown>;
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
    return this.query(body as unknown as Query);
  }

  private query({ query: source, variables: variableValues }: Query): object {
    const { data, errors } = graphqlSync({ schema: SCHEMA, source, variableValues, rootValue: this.root() });
    // The message names the field.
    if (errors) throw new Error(errors.map(({ message }) => message).join('\n'));
    return { data };
  }

  private root() {
    const edges: object[] = [];
    return {
      model: ({ name, entityName }: { name: string; entityName?: string | null }) => ({
        ...this.projectOf(name, entityName),
        bucket: ({ name: id }: { name: string }) => {
          const run = this.find(`${entityName ?? this.defaultEntity}/${name}/${id}`);
          return run ? statusOf(run) : null;
        },
      }),
      upsertBucket: ({ input }: { input: Upsert }) => this.upsert(input),
      // W&B's client asks for these.
      viewer: { id: 'u', entity: this.defaultEntity, username: 'me', flags: '{}', teams: { edges } },
      serverInfo: { features: [] },
      createRunFiles: { runID: 'r', uploadHeaders: [], files: [] },
    };
  }

  private find(path: string): StoredWandbRun | undefined {
    return this.runs.find((run) => run.path === path);
  }

  private projectOf(name: string, entity = this.defaultEntity as string | null) {
    return { id: 'p', name, entity: { id: 'e', name: entity ?? this.defaultEntity } };
  }

  private upsert({ name, modelName, entityName, ...given }: Upsert): object {
    const project = this.projectOf(modelName, entityName);
    const path = `${project.entity.name}/${modelName}/${name}`;
    const found = this.find(path);
    const run: StoredWandbRun = found ?? {
      ...{ path, displayName: null, config: {}, tags: [], files: {}, exitcode: null, beats: 0 },
    };
    if (!found) this.runs.push(run);
    run.displayName = given.displayName ?? run.displayName;
    run.tags = given.tags ?? run.tags;
    run.config = given.config ? JSON.parse(given.config) : run.config;
    run.exitcode = null;
    return { bucket: { ...statusOf(run), project }, inserted: !found };
  }

  private write(path: string, { files = {}, complete, exitcode }: WandbStream): object {
    const run = this.find(path);
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
