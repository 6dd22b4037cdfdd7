/**
 * The part of the protocol of W&B's client that forwarding needs: GraphQL for a run, and `file_stream` for the lines of
 * its files. golden/wandb.json has requests of the client itself.
 */
import { Check, type Static, type TSchema, Type } from '../../platform/schema.js';
import { ERROR_CODE, Identifier, type TrackerClient, TrackerError } from './tracker-client.js';

const UPSERT = `mutation UpsertBucket($name: String, $project: String, $entity: String, $displayName: String,
  $config: JSONString, $tags: [String!]) {
  upsertBucket(input: {name: $name, modelName: $project, entityName: $entity, displayName: $displayName,
    config: $config, tags: $tags}) {
    bucket { name project { name entity { name } } }
  }
}`;

const FIND = `query RunResumeStatus($name: String!, $project: String, $entity: String) {
  model(name: $project, entityName: $entity) {
    bucket(name: $name, missingOk: true) { historyLineCount historyTail summaryMetrics }
  }
}`;

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const named = <F extends Record<string, TSchema>>(fields: F) => Type.Object({ name: Identifier, ...fields });

const Stored = Type.Object({
  /** Lines of the history. */
  historyLineCount: nullable(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  /** JSON list with the last lines. */
  historyTail: nullable(Type.String()),
  /** JSON. */
  summaryMetrics: nullable(Type.String()),
});
export type StoredWandbRun = Static<typeof Stored>;

const answers = {
  upserted: new Check(
    Type.Object({
      upsertBucket: Type.Object({ bucket: named({ project: named({ entity: named({}) }) }) }),
    }),
  ),
  found: new Check(Type.Object({ model: nullable(Type.Object({ bucket: nullable(Stored) })) })),
  data: new Check(Type.Object({ data: Type.Unsafe<unknown>({}) })),
  errors: new Check(
    Type.Object({
      errors: Type.Array(
        Type.Object({
          extensions: Type.Optional(
            Type.Object({ code: Type.Optional(Type.String({ pattern: ERROR_CODE })) }),
          ),
        }),
        { minItems: 1 },
      ),
    }),
  ),
};

/** Statuses of requests that W&B's client does not repeat, without those that another API key may have. */
const PERMANENT: ReadonlySet<number> = new Set([400, 404, 409, 410, 413, 422, 501]);

/** A run by its id; the default entity of the API key without `entity`. */
export interface WandbRunName {
  name: string;
  project: string;
  entity?: string;
}

interface WandbRunFields {
  displayName: string;
  /** JSON: `{"key": {"value": …}, …}`. */
  config: string;
  tags: readonly string[];
}

/**
 * A request to `file_stream`. Lines replace those with the same number, so that a repeated request has no effect.
 */
export interface WandbStream {
  files?: Record<string, { offset: number; content: readonly string[] }>;
  /** The run has ended with this exit code. */
  complete?: true;
  exitcode?: number;
}

export class WandbClient {
  constructor(private readonly http: TrackerClient) {}

  /** Returns the run, or null. */
  async find(run: WandbRunName): Promise<StoredWandbRun | null> {
    return (await this.query('RunResumeStatus', FIND, 'found', { ...run })).model?.bucket ?? null;
  }

  /**
   * Creates a run, or continues one. Fields that are absent stay as they are.
   *
   * @returns the path `ENTITY/PROJECT/ID` of the run
   */
  async upsert(run: WandbRunName, fields?: WandbRunFields): Promise<string> {
    const { upsertBucket } = await this.query('UpsertBucket', UPSERT, 'upserted', { ...run, ...fields });
    const { name, project } = upsertBucket.bucket;
    return `${project.entity.name}/${project.name}/${name}`;
  }

  /** @param path of the run */
  async stream(path: string, body: WandbStream): Promise<void> {
    const { status } = await this.http.send('POST', `files/${pathInUrl(path)}/file_stream`, body);
    if (status < 200 || status > 299) throw refused(status, null, PERMANENT.has(status));
  }

  /** Address of a run for people. The API of W&B's cloud has a host of its own. @param path of the run */
  pageOf(path: string): string {
    const url = this.http.tracker.url.replace('://api.wandb.', '://wandb.').replace('://api.', '://app.');
    return `${url.replace(/\/+$/, '')}/${pathInUrl(path.replace(/\/(?=[^/]*$)/, '/runs/'))}`;
  }

  private async query<K extends 'upserted' | 'found'>(
    operationName: string,
    query: string,
    kind: K,
    variables: object,
  ): Promise<Answer<K>> {
    const { status, value } = await this.http.send('POST', 'graphql', { operationName, query, variables });
    const isError = answers.errors.fits(value);
    const code = isError ? (value.errors[0]?.extensions?.code ?? null) : null;
    // A conflict of two mutations passes.
    if (status < 200 || status > 299) throw refused(status, code, PERMANENT.has(status) && status !== 409);
    if (isError) throw refused(status, code, true);
    const data = answers.data.fits(value) ? value.data : null;
    if (!answers[kind].fits(data)) throw new TrackerError('protocol_error');
    return data as Answer<K>;
  }
}

type Answer<K extends keyof typeof answers> =
  (typeof answers)[K] extends Check<infer S extends TSchema> ? Static<S> : never;

function refused(status: number, errorCode: string | null, permanent: boolean): TrackerError {
  return new TrackerError('refused', { status, error_code: errorCode, permanent });
}

function pathInUrl(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}
