import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { type FieldError, type OperationId, SCOPES, type Scope } from '../contracts/index.js';
import { projectRoot } from '../platform/process/root.js';
import { toFieldErrors } from './http/field-errors.js';
import { compileComponent } from './http/validators.js';

/** Properties of an operation besides its schemas. */
export interface Operation {
  operationId: OperationId;
  /** Scopes that a key must have; null if the operation needs no key. */
  scopes: readonly Scope[] | null;
  /** Media types that its body may have; empty if it reads none. */
  mediaTypes: readonly string[];
  bodyRequired: boolean;
  /** True if its answers are JSON documents, neither files nor streams. */
  isJson: boolean;
  /** True if it is mutating and goes into the audit log. */
  isAudited: boolean;
  /** True if it takes an `Idempotency-Key`. */
  isKeyed: boolean;
  /** True if a share may do it; it concerns the job in its path, or the share itself. */
  isShared: boolean;
  /** True if its JSON body is neither parsed nor checked before the handler, which does both in a thread. */
  isRaw: boolean;
}

interface OperationDocument {
  operationId: OperationId;
  security?: Record<string, string[]>[];
  'x-audited'?: boolean;
  'x-shared'?: boolean;
  'x-raw-body'?: boolean;
  parameters?: { $ref?: string }[];
  requestBody?: { required?: boolean; content: Record<string, unknown> };
  responses: Record<string, { content?: Record<string, unknown> }>;
}

type SchemaErrors = (value: unknown) => FieldError[];

/** The HTTP contract from `openapi.yaml`. */
export interface Contract {
  /** The file's text, which the server also serves. */
  text: string;
  document: {
    security?: Record<string, string[]>[];
    paths: Record<string, Record<string, unknown>>;
    components: { schemas: Record<string, object> };
  };
  operations: ReadonlyMap<OperationId, Operation>;
  /** Return the schema errors of a job document, of a request for a sample, and of a grader. */
  jobSpecErrors: SchemaErrors;
  sampleRequestErrors: SchemaErrors;
  graderErrors: SchemaErrors;
}

const IDEMPOTENCY_KEY = '#/components/parameters/IdempotencyKey';
const METHODS = ['get', 'put', 'post', 'delete', 'patch'];

let contract: Contract | undefined;

/** Returns the contract of this process, which is read once. */
export function theContract(): Contract {
  contract ??= loadContract();
  return contract;
}

/** Returns an operation. @throws Error if the contract has none of this id */
export function operationOf({ operations }: Pick<Contract, 'operations'>, id: OperationId): Operation {
  const operation = operations.get(id);
  if (operation === undefined) throw new Error(`there is no operation ${id}`);
  return operation;
}

/** Reads the contract. @throws Error when an operation requires an unknown scope */
export function loadContract(): Contract {
  const text = readFileSync(join(projectRoot(), 'openapi.yaml'), 'utf8');
  // js-yaml reads this file in a quarter of the time of `yaml`, which matters at the start of the API. `yaml` is for
  // files whose errors must contain line numbers.
  const document = load(text) as Contract['document'];
  const operations = new Map<OperationId, Operation>();
  for (const item of Object.values(document.paths)) {
    for (const method of METHODS) {
      const operation = item[method] as OperationDocument | undefined;
      if (operation === undefined) continue;
      operations.set(operation.operationId, {
        operationId: operation.operationId,
        scopes: scopesOf(operation.operationId, operation.security ?? document.security ?? []),
        mediaTypes: Object.keys(operation.requestBody?.content ?? {}),
        bodyRequired: operation.requestBody?.required ?? false,
        isJson: answersJson(operation),
        isAudited: method !== 'get' && operation['x-audited'] !== false,
        isShared: operation['x-shared'] === true,
        isRaw: operation['x-raw-body'] === true,
        isKeyed: operation.parameters?.some(({ $ref }) => $ref === IDEMPOTENCY_KEY) ?? false,
      });
    }
  }
  return {
    text,
    document,
    operations,
    jobSpecErrors: schemaErrors(document, 'JobSpec'),
    sampleRequestErrors: schemaErrors(document, 'SampleRequest'),
    graderErrors: schemaErrors(document, 'Grader'),
  };
}

function answersJson({ responses }: OperationDocument): boolean {
  const types = Object.entries(responses).flatMap(([status, { content = {} }]) =>
    status.startsWith('2') ? Object.keys(content) : [],
  );
  return types.length > 0 && types.every((type) => type === 'application/json');
}

function schemaErrors(document: object, schema: string): SchemaErrors {
  const validate = compileComponent(document, schema);
  return (value) => (validate(value) ? [] : toFieldErrors(validate.errors ?? []));
}

function scopesOf(operationId: string, security: Record<string, string[]>[]): readonly Scope[] | null {
  const [first] = security;
  if (first === undefined) return null;
  const names = first.bearerAuth ?? [];
  for (const name of names) {
    if (!isScope(name)) throw new Error(`openapi.yaml: ${operationId} requires the unknown scope ${name}`);
  }
  return names as Scope[];
}

function isScope(name: string): name is Scope {
  return (SCOPES as readonly string[]).includes(name);
}
