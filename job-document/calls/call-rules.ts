/** Rules between the fields of a call and the document of its session. */
import type { Call, FieldError, PassLoss } from '../../contracts/index.js';
import { MAX_SAMPLED_TOKENS, MAX_SAMPLES } from '../common/call-limits.js';
import { fieldsOfType } from '../common/defaults.js';
import { fieldError, withoutEffect } from '../common/field-error.js';
import { checkRounding } from '../resolve/optimizer.js';
import type { CallBounds } from './complete-call.js';

type Pass = Extract<Call, { rows: unknown }>;
type Row = Pass['rows'][number];
type Sample = Extract<Call, { type: 'sample' }>;

const MAX_PASS_TOKENS = 2 ** 21;
const NO_TARGET = -100;
/** A call may have millions of bad numbers; the answer lists the first of them. */
const MAX_ERRORS = 100;

const LISTS = ['weights', 'log_probs', 'advantages'] as const;
type List = (typeof LISTS)[number];

/** Lists of a row that a loss reads. */
const LISTS_OF: Readonly<Record<PassLoss['type'], readonly List[]>> = {
  cross_entropy: [],
  importance_sampling: ['log_probs', 'advantages'],
  ppo: ['log_probs', 'advantages'],
  cispo: ['log_probs', 'advantages'],
  dpo: ['log_probs'],
};

/** @param call a call that its schema accepts */
export function checkCall(call: Call, bounds: CallBounds): FieldError[] {
  switch (call.type) {
    case 'forward_backward':
    case 'forward':
      return checkPass(call, bounds).slice(0, MAX_ERRORS);
    case 'sample':
      return checkSample(call, bounds).slice(0, MAX_ERRORS);
    case 'optim_step':
      return checkRounding('', call);
    default:
      return [];
  }
}

function checkPass({ loss, rows }: Pass, bounds: CallBounds): FieldError[] {
  const { global_batch_size: maxRows, micro_batch_size: leaf } = bounds;
  const errors = withoutEffect(
    '/loss',
    loss,
    fieldsOfType('PassLoss', loss.type),
    `with the loss ${loss.type}`,
  );
  errors.push(...checkBeta(loss, bounds));
  if (rows.length > maxRows) {
    const message = `the pass has ${rows.length} rows; train.global_batch_size allows ${maxRows}: send several passes`;
    errors.push(fieldError('/rows', 'wrong_length', message));
  }
  const tokens = rows.reduce((sum, row) => sum + row.tokens.length, 0);
  if (tokens > MAX_PASS_TOKENS) {
    const message = `the pass has ${tokens} tokens; the maximum is ${MAX_PASS_TOKENS}: send several passes`;
    errors.push(fieldError('/rows', 'wrong_length', message));
  }
  if (loss.type === 'dpo' && (rows.length % 2 === 1 || leaf % 2 === 1)) {
    const message =
      rows.length % 2 === 1
        ? `dpo compares pairs of rows, and the pass has ${rows.length} rows`
        : `dpo needs both rows of a pair in one leaf, and train.micro_batch_size is ${leaf}: it must be even`;
    errors.push(fieldError('/rows', 'wrong_length', message));
  }
  for (const [i, row] of rows.entries()) {
    if (errors.length >= MAX_ERRORS) break;
    errors.push(...checkRow(`/rows/${i}`, row, loss, bounds));
  }
  return errors;
}

function checkBeta({ type, beta }: PassLoss, { base_fault }: CallBounds): FieldError[] {
  if (beta === undefined || (type === 'dpo') === beta > 0) return [];
  if (type === 'dpo') return [fieldError('/loss/beta', 'out_of_range', 'beta of dpo is above 0')];
  return base_fault ? [fieldError('/loss/beta', base_fault.code, base_fault.message, '0')] : [];
}

function checkRow(
  at: string,
  row: Row,
  { type: loss, beta = 0 }: PassLoss,
  bounds: CallBounds,
): FieldError[] {
  const { sequence_length: longest, vocab_size: vocab } = bounds;
  const needed = LISTS_OF[loss];
  const optional = loss === 'cross_entropy' || (loss !== 'dpo' && beta > 0) ? ['weights'] : [];
  const { length } = row.tokens;
  const errors: FieldError[] = [];
  if (length > longest) {
    const message = `the row has ${length} tokens; train.sequence_length allows ${longest}`;
    errors.push(fieldError(`${at}/tokens`, 'wrong_length', message));
  }
  for (const name of ['targets', ...LISTS] as const) {
    const list = row[name];
    if (list !== undefined && list.length !== length) {
      const message = `${name} has ${list.length} numbers, and the row has ${length} tokens`;
      errors.push(fieldError(`${at}/${name}`, 'wrong_length', message));
    }
  }
  for (const name of needed)
    if (row[name] === undefined)
      errors.push(fieldError(`${at}/${name}`, 'missing_field', `the loss ${loss} needs ${name}`));
  const read = new Set<string>(['tokens', 'targets', ...needed, ...optional]);
  errors.push(...withoutEffect(at, row, read, `with the loss ${loss}`));
  errors.push(...checkTokens(`${at}/tokens`, row.tokens, vocab));
  const bad = row.targets.findIndex((target) => target >= vocab || (target < 0 && target !== NO_TARGET));
  if (bad >= 0) errors.push(outside(`${at}/targets/${bad}`, row.targets[bad], vocab, `, or ${NO_TARGET}`));
  return errors;
}

function checkSample(
  call: Sample,
  { sequence_length: longest, vocab_size: vocab }: CallBounds,
): FieldError[] {
  const { prompts, n = 1, max_tokens: more, stop_tokens: stops = [] } = call;
  const errors: FieldError[] = [];
  const samples = prompts.length * n;
  if (samples > MAX_SAMPLES) {
    const message = `${prompts.length} prompts with n ${n} are ${samples} samples; the maximum is ${MAX_SAMPLES}`;
    errors.push(fieldError('/n', 'out_of_range', message));
  }
  if (samples * more > MAX_SAMPLED_TOKENS) {
    const message = `${samples} samples of ${more} tokens exceed the maximum of ${MAX_SAMPLED_TOKENS} tokens`;
    errors.push(fieldError('/max_tokens', 'out_of_range', message));
  }
  for (const [i, prompt] of prompts.entries()) {
    if (errors.length >= MAX_ERRORS) break;
    if (prompt.length + more > longest) {
      const message = `the prompt has ${prompt.length} tokens, and with max_tokens ${more} it exceeds train.sequence_length ${longest}`;
      errors.push(fieldError(`/prompts/${i}`, 'wrong_length', message));
    }
    errors.push(...checkTokens(`/prompts/${i}`, prompt, vocab));
  }
  return [...errors, ...checkTokens('/stop_tokens', stops, vocab)];
}

/** Returns an error for the first token that the model does not have. */
function checkTokens(at: string, tokens: readonly number[], vocab: number): FieldError[] {
  const bad = tokens.findIndex((token) => token >= vocab);
  return bad < 0 ? [] : [outside(`${at}/${bad}`, tokens[bad], vocab)];
}

function outside(at: string, token: number | undefined, vocab: number, or = ''): FieldError {
  return fieldError(at, 'out_of_range', `${token} is not a token of the model: 0 to ${vocab - 1}${or}`);
}
