/** Main module of a thread that computes the tokens which constrained answers may continue with. */
import { workerData } from 'node:worker_threads';
import { ZerofleetError } from '../../../contracts/index.js';
import { ConstrainedAnswer, type Constraint, Grammars } from '../../../formats/json-grammar/constraint.js';
import { vocabularyOf } from '../../../formats/json-grammar/token-bytes.js';
import type { TokenMask } from '../../../formats/json-grammar/vocabulary.js';
import { serveTasks } from '../../../platform/threads/serve-tasks.js';
import type { Decoding } from './prompt.js';

export interface MaskSetup {
  table: Decoding['table'];
  /** Only tokens below this are drawn. */
  num_tokens: number;
}

/** An answer of which all tokens are known. */
export interface MaskRequest {
  /** Number of the answer; its state may be kept under it. */
  sequence: number;
  constraint: Constraint;
  tokens: Int32Array;
}

/** Tokens that may continue an answer, as a mask; null: it is complete. */
export interface NextTokens {
  mask: TokenMask | null;
}

export type MaskTasks = typeof tasks;

/** Answers whose state is kept. Others are read again from their tokens. */
const MAX_ANSWERS = 256;

const { table, num_tokens } = workerData as MaskSetup;
let grammars: Grammars | null = null;
const answers = new Map<number, ConstrainedAnswer>();

const tasks = {
  next({ sequence, constraint, tokens }: MaskRequest): NextTokens {
    grammars ??= new Grammars(vocabularyOf(table, num_tokens));
    const answer = answers.get(sequence) ?? new ConstrainedAnswer(constraint, grammars);
    answers.delete(sequence);
    for (const token of tokens.subarray(answer.numTokens)) answer.push(token);
    if (answer.isComplete) return { mask: null };
    answers.set(sequence, answer);
    const [oldest] = answers.keys();
    if (answers.size > MAX_ANSWERS && oldest !== undefined) answers.delete(oldest);
    const mask = answer.allowed();
    if (mask.some((word) => word !== 0)) return { mask };
    throw new ZerofleetError('tokenizer_invalid', 'the tokenizer has no token that continues the answer');
  },
};

serveTasks(tasks);
