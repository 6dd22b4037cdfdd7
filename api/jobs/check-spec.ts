import {
  type FieldError,
  type Grader,
  type Integration,
  type JobSpec,
  type ResolvedJobSpec,
  ZerofleetError,
} from '../../contracts/index.js';
import { partsOf } from '../../graders/problems.js';
import { DEFAULT_POOL, initFromOf, type RankBudget, resolveSpec } from '../../job-document/index.js';
import { fieldSummary } from '../http/problem.js';
import type { BucketModel } from '../models/bucket-folder.js';
import type { BucketTokenizer } from '../models/bucket-tokenizers.js';
import { type DataLookups, findData, findEntries, type RequiredObject } from './find-data.js';
import { findInit, type InitLookups } from './find-init.js';
import { findTokenizer, type TokenizerLookups } from './find-tokenizer.js';

type Evaluation = NonNullable<NonNullable<JobSpec['train']>['evaluation']>;

/** Sections of the document that rules between fields read. */
const SECTIONS_WITH_RULES = ['model', 'data', 'train', 'zero', 'resources', 'deepspeed_config'];

/** Look-ups of the objects that a document refers to. An object without a look-up is not checked. */
export interface SpecLookups extends DataLookups, InitLookups, TokenizerLookups {
  /** Project of the job. */
  project: string;
  /** Returns the error of a chat template, or null. */
  template(source: string): Promise<string | null>;
  /** Memory of a rank of a pool; null if none of its workers is known. */
  budget?(pool: string): Promise<RankBudget | null>;
  /** True if the project has this webhook. */
  webhook?(id: string): Promise<boolean>;
  /** Returns the error of an integration, or null. The pointer begins at the integration. */
  integration?(given: Integration): FieldError | null;
  /** Returns the errors of a grader. The pointers begin at the grader. */
  grader?(given: Grader): Promise<FieldError[]>;
  /** Returns the schema errors of a document. */
  schemaErrors(document: unknown): FieldError[];
}

/** Bucket contents that must be copied before a job can be recorded. */
export interface RequiredCopies {
  /** Sources of the datasets of the training, in their order. */
  training: readonly (RequiredObject | null)[];
  /** Sources of `train.evaluation.datasets`, by entry. */
  evaluation: readonly (RequiredObject | null)[];
  /** Source of the model that provides the tokenizer. */
  tokenizer: BucketTokenizer | null;
  /** Source of the initial model. */
  folder: BucketModel | null;
}

/** A valid document. */
export interface CheckedSpec {
  /** Ids of `requiredCopies` copies are missing in it. */
  spec: ResolvedJobSpec;
  requiredCopies: RequiredCopies;
}

const NOTHING_TO_COPY: RequiredCopies = { training: [], evaluation: [], tokenizer: null, folder: null };

/**
 * Resolves a document or throws one error with all bad fields.
 *
 * Rules between fields are also checked despite schema errors that cannot mislead them: unknown fields and bad names. A
 * bad number would cause misleading errors at other fields.
 *
 * @param body the document as sent
 * @param schemaErrors errors found by the schema
 * @throws ZerofleetError `validation_failed` with all bad fields
 */
export async function checkSpec(
  body: unknown,
  schemaErrors: readonly FieldError[],
  find: SpecLookups,
): Promise<CheckedSpec> {
  const { spec, requiredCopies, errors } = await tryResolve(body, schemaErrors, find);
  if (spec === null) throw invalidDocument(errors);
  return { spec, requiredCopies };
}

/** Same as `checkSpec` for a document inside a body: returns null and all errors instead of throwing. */
export async function tryResolve(
  body: unknown,
  schemaErrors: readonly FieldError[],
  find: SpecLookups,
): Promise<{ spec: ResolvedJobSpec | null; requiredCopies: RequiredCopies; errors: FieldError[] }> {
  const errors = [...schemaErrors, ...missingFields(body), ...otherProject(body, schemaErrors, find.project)];
  if (!errors.every(allowsRuleChecks)) return { spec: null, requiredCopies: NOTHING_TO_COPY, errors };
  const document = { ...withoutFields(body as JobSpec, errors), project: find.project };
  const { datasets, copies: training, ...found } = await findData(document.data, find);
  const listed = document.train?.evaluation?.datasets ?? [];
  const evaluated = await findEntries(listed, '/train/evaluation/datasets', find);
  errors.push(...found.errors, ...evaluated.errors);
  errors.push(...(await unknownWebhooks(document.notify?.webhooks ?? [], find)));
  errors.push(...refusedIntegrations(document.integrations ?? [], find));
  errors.push(...(await badGraders(document.train?.objective, find)));
  const { source, folder, errors: sourceErrors } = await findInit(document.model, find);
  const reading = await findTokenizer(found.data, { datasets, source, folder }, find);
  const { data, tokenizer } = reading;
  const validate = find.schemaErrors;
  const today = new Date().toISOString().slice(0, 10);
  const named = { ...withEvaluation(document, evaluated.entries), data };
  const evaluation = evaluated.datasets;
  const bytes = bytesOf(training.filter((_, i) => datasets[i] === null));
  const budget = await budgetOf(document, find);
  const known = { source, bytes, tokenizer, evaluation, budget, today, validate };
  const resolved = resolveSpec(named, datasets, known);
  const { chat_template } = resolved.spec.data;
  errors.push(...sourceErrors, ...reading.errors, ...resolved.errors);
  errors.push(...(await unreadable(chat_template, find)));
  const spec = errors.length === 0 ? resolved.spec : null;
  const requiredCopies = { training, evaluation: evaluated.copies, tokenizer: reading.copy, folder };
  return { spec, requiredCopies, errors: errors.map((error) => asSent(error, document)) };
}

/** Returns the size of objects together; null if one is unknown. */
function bytesOf(objects: readonly (RequiredObject | null)[]): number | null {
  return objects.reduce<number | null>(
    (sum, required) => (sum === null || required === null ? null : sum + required.source.object.bytes),
    0,
  );
}

/** A worker asks servers, not the models that other workers answer for. */
function unreachable(grader: Grader): FieldError[] {
  return partsOf(grader).flatMap(({ part, at }) =>
    part.type === 'score_model' && part.server === undefined
      ? [
          {
            pointer: `${at}/server`,
            code: 'missing_field' as const,
            message:
              'graders of jobs ask models of servers: set server to one that the operator has configured',
          },
        ]
      : [],
  );
}

async function badGraders(
  objective: NonNullable<JobSpec['train']>['objective'],
  find: SpecLookups,
): Promise<FieldError[]> {
  if (objective?.type !== 'grpo' || objective.grader === undefined) return [];
  const grader = objective.grader as Grader;
  const errors = [...((await find.grader?.(grader)) ?? []), ...unreachable(grader)];
  return errors.map((error) => ({ ...error, pointer: `/train/objective/grader${error.pointer}` }));
}

/** Workers are asked only if the document depends on their memory. */
async function budgetOf({ train, resources }: JobSpec, find: SpecLookups): Promise<RankBudget | null> {
  if (train?.micro_batch_size !== 'auto') return null;
  return (await find.budget?.(resources?.pool ?? DEFAULT_POOL)) ?? null;
}

function withEvaluation(document: JobSpec, datasets: Evaluation['datasets']): JobSpec {
  const { train } = document;
  if (train?.evaluation === undefined) return document;
  return { ...document, train: { ...train, evaluation: { ...train.evaluation, datasets } } };
}

/** Maps errors of a copied dataset or model to the URI field that the client sent. A string has no subfields. */
function asSent(error: FieldError, { data, train, model }: JobSpec): FieldError {
  const { pointer } = error;
  if (pointer === '/data/dataset' && data.uri !== undefined) return { ...error, pointer: '/data/uri' };
  const [, list, entry] = /^(.*)\/(\d+)\/dataset$/.exec(pointer) ?? [];
  const entries = list === '/data/mixture' ? data.mixture : train?.evaluation?.datasets;
  if (entry !== undefined && entries?.[Number(entry)]?.uri !== undefined)
    return { ...error, pointer: pointer.replace(/dataset$/, 'uri') };
  if (typeof model.init_from === 'string' && pointer.startsWith('/model/init_from/'))
    return { ...error, pointer: '/model/init_from' };
  if (pointer === '/model/init_from/model' && initFromOf(model)?.uri !== undefined)
    return { ...error, pointer: '/model/init_from/uri' };
  return error;
}

/** Error that lists every bad field. */
export function invalidDocument(fields: FieldError[]): ZerofleetError {
  return new ZerofleetError('validation_failed', fieldSummary(fields), { fields });
}

/** Not expressible in the schema: a session has neither data nor steps, and a `deepspeed_config` may have the steps. */
function missingFields(body: unknown): FieldError[] {
  if (!isObject(body) || Array.isArray(body)) return [];
  if (isObject(body.train) && body.train.session !== undefined) return [];
  return [...missingData(body), ...missingSteps(body)];
}

function missingData({ data }: Record<string, unknown>): FieldError[] {
  const names = ['dataset', 'uri', 'mixture'];
  if (!isObject(data) || names.some((name) => name in data)) return [];
  return [{ pointer: '/data', code: 'exactly_one_of', message: `give exactly one of ${names.join(', ')}` }];
}

function missingSteps(body: Record<string, unknown>): FieldError[] {
  if (body.deepspeed_config !== undefined) return [];
  if (body.train === undefined)
    return [{ pointer: '/train', code: 'missing_field', message: 'train is required' }];
  if (!isObject(body.train) || body.train.steps !== undefined || body.train.epochs !== undefined) return [];
  return [{ pointer: '/train/steps', code: 'missing_field', message: 'steps or epochs is required' }];
}

/** A document may name its project, but the key determines it. */
function otherProject(body: unknown, known: readonly FieldError[], project: string): FieldError[] {
  if (!isObject(body) || body.project === undefined || body.project === project) return [];
  if (known.some(({ pointer }) => pointer === '/project')) return [];
  const message = `the API key belongs to project ${project}; leave the field out, or use a key of ${body.project}`;
  return [{ pointer: '/project', code: 'project_mismatch', message, suggestion: project }];
}

function allowsRuleChecks({ code, pointer }: FieldError): boolean {
  const [, section = ''] = pointer.split('/');
  // A document that is not an object allows no rule checks.
  return section !== '' && (code === 'unknown_field' || !SECTIONS_WITH_RULES.includes(section));
}

/** The document without the fields that have errors; their defaults apply. */
function withoutFields(body: JobSpec, errors: readonly FieldError[]): JobSpec {
  const copy = structuredClone(body);
  for (const { pointer } of errors) {
    const names = pointer.slice(1).split('/').map(unescapePointer);
    const last = names.pop();
    let parent: unknown = copy;
    for (const name of names) parent = isObject(parent) ? parent[name] : undefined;
    if (isObject(parent) && last !== undefined) delete parent[last];
  }
  return copy;
}

function unescapePointer(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

async function unknownWebhooks(ids: readonly string[], find: SpecLookups): Promise<FieldError[]> {
  const known = await Promise.all(ids.map((id) => find.webhook?.(id) ?? true));
  return ids.flatMap((id, i) => {
    if (known[i]) return [];
    const message = `there is no webhook ${id}`;
    return [{ pointer: `/notify/webhooks/${i}`, code: 'webhook_not_found', message }];
  });
}

function refusedIntegrations(given: readonly Integration[], find: SpecLookups): FieldError[] {
  return given.flatMap((integration, i) => {
    const error = find.integration?.(integration) ?? null;
    return error === null ? [] : [{ ...error, pointer: `/integrations/${i}${error.pointer}` }];
  });
}

/** Errors of the template used for chats: the document's own or that of its tokenizer. */
async function unreadable(template: string | null, find: SpecLookups): Promise<FieldError[]> {
  const message = template === null ? null : await find.template(template);
  return message === null ? [] : [{ pointer: '/data/chat_template', code: 'chat_template_invalid', message }];
}
