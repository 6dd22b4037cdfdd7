/** Graders: what they grade, what they give, and what they need from their process. */
import type { FieldError, Grade, GradeError, Grader } from '../contracts/index.js';

/** An answer with its line of data. */
export interface GradedItem {
  /** Fields of the line of data. */
  item: Record<string, unknown>;
  sample: { output_text: string };
}

/** A question to the model of a `score_model` grader. */
export interface ModelQuestion {
  model: string;
  /** Configured server; null for a model of the project. */
  server: string | null;
  messages: { role: 'system' | 'developer' | 'user' | 'assistant'; content: string }[];
  max_tokens: number;
  temperature: number;
  top_p: number;
  seed: number;
  /** JSON schema of the answer. */
  schema: Record<string, unknown>;
}

/** Answer of a model, or its refusal. */
export interface ModelAnswer {
  text: string;
  refusal: string | null;
  tokens: number;
}

/** What graders of one project reach outside of their process. */
export interface GraderOutside {
  /** @throws GraderFault `model_unavailable`; the signal's reason */
  askModel(question: ModelQuestion, signal: AbortSignal): Promise<ModelAnswer>;
  /** URL and secrets of a webhook; null if the project has none of this id. */
  findWebhook(id: string): Promise<{ url: string; secrets: readonly string[] } | null>;
}

export interface Graders {
  /**
   * Grades an answer. A failure of the grader is part of the grade.
   * @throws the signal's reason; ZerofleetError `shutting_down`
   */
  grade(grader: Grader, graded: GradedItem, signal?: AbortSignal): Promise<Grade>;
  /** Returns everything wrong with a grader, also with its source where Python can be started. Pointers begin at it. */
  problems(grader: Grader, signal?: AbortSignal): Promise<FieldError[]>;
  /** Ends all evaluations. Idempotent. */
  close(): Promise<void>;
}

/** A grader could not give a score. */
export class GraderFault extends Error {
  constructor(
    readonly code: GradeError['code'],
    message: string,
  ) {
    super(message);
  }
}
