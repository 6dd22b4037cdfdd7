import type { FieldError, Grade, GradeError, Grader, SingleGrader } from '../contracts/index.js';
import { parseFormula } from './formula.js';
import { type GradedItem, GraderFault, type GraderOutside, type Graders } from './grader.js';
import { graderProblems } from './problems.js';
import { GraderRuntime, type RuntimeOptions } from './runtime.js';
import { askScore } from './score-model.js';
import { Rendering } from './template.js';
import { askWebhook } from './webhook.js';

/** What graders of a project have. */
interface Setting {
  runtime: GraderRuntime;
  project: string;
  outside: GraderOutside;
}

/** Creates graders of one project, with processes and threads of their own. */
export function createGraders({
  project,
  outside,
  ...options
}: RuntimeOptions & Omit<Setting, 'runtime'>): Graders {
  const runtime = new GraderRuntime(options);
  return { ...gradersOf({ runtime, project, outside }), close: () => runtime.close() };
}

/** Returns graders of a project, whose processes and threads belong to the runtime. */
export function gradersOf(setting: Setting): Omit<Graders, 'close'> {
  const never = new AbortController().signal;
  return {
    grade: async (grader, graded, signal = never) => {
      signal.throwIfAborted();
      return new Evaluation(setting, graded, signal).grade(grader);
    },
    problems: (grader, signal = never) => allProblems(grader, { ...setting, signal }),
  };
}

/** Returns everything wrong with a grader, also with its source where Python can be started. */
export async function allProblems(
  grader: Grader,
  { runtime, project, signal }: Pick<Setting, 'runtime' | 'project'> & { signal: AbortSignal },
): Promise<FieldError[]> {
  const parts = grader.type === 'multi' ? Object.entries(grader.graders) : ([['', grader]] as const);
  const sources = parts.map(async ([name, part]): Promise<FieldError[]> => {
    if (part.type !== 'python') return [];
    try {
      await runtime.python.check(part.source, { project, signal });
      return [];
    } catch (error) {
      if (!(error instanceof GraderFault)) throw error;
      // Other faults are none of the document; a grade reports them.
      if (error.code !== 'python_source_invalid') return [];
      const pointer = grader.type === 'multi' ? `/graders/${name}/source` : '/source';
      return [{ pointer, code: 'grader_invalid', message: error.message }];
    }
  });
  return [...graderProblems(grader), ...(await Promise.all(sources)).flat()];
}

/** One grade. */
class Evaluation {
  private readonly errors: GradeError[] = [];
  /** Tokens that models used. */
  private readonly tokens = new Map<string, number>();
  private readonly rendering: Rendering;

  constructor(
    private readonly setting: Setting,
    private readonly graded: GradedItem,
    private readonly signal: AbortSignal,
  ) {
    this.rendering = new Rendering(graded);
  }

  async grade(grader: Grader): Promise<Grade> {
    const began = performance.now();
    const parts = grader.type === 'multi' ? grader.graders : { [grader.name]: grader };
    const found = Object.entries(parts).map(
      async ([name, part]) => [name, await this.scoreOrZero(name, part)] as const,
    );
    const scores = Object.fromEntries(await Promise.all(found));
    const reward = this.rewardOf(grader, scores);
    const tokens = Object.fromEntries(this.tokens);
    const seconds = (performance.now() - began) / 1000;
    return { reward, scores, errors: this.errors, seconds, tokens };
  }

  private async scoreOrZero(name: string, grader: SingleGrader): Promise<number> {
    try {
      return await this.scoreOf(grader);
    } catch (error) {
      if (!(error instanceof GraderFault)) throw error;
      this.errors.push({ grader: name, code: error.code, message: error.message });
      return 0;
    }
  }

  private rewardOf(grader: Grader, scores: Record<string, number>): number {
    if (grader.type !== 'multi') return scores[grader.name] ?? 0;
    const value = parseFormula(grader.calculate_output, Object.keys(grader.graders))(scores);
    if (Number.isFinite(value)) return value;
    const message = `calculate_output gives ${value} for ${JSON.stringify(scores)}`;
    this.errors.push({ grader: grader.name, code: 'formula_not_finite', message });
    return 0;
  }

  private async scoreOf(grader: SingleGrader): Promise<number> {
    const { signal, graded } = this;
    const { runtime, project, outside } = this.setting;
    switch (grader.type) {
      case 'string_check':
        return runtime.compare(
          'check',
          { operation: grader.operation, ...this.textsOf(grader) },
          { project, signal },
        );
      case 'text_similarity': {
        const { evaluation_metric: metric } = grader;
        return runtime.compare('similarity', { metric, ...this.textsOf(grader) }, { project, signal });
      }
      case 'score_model': {
        const { score, tokens } = await askScore(grader, this.rendering, outside, signal);
        this.tokens.set(grader.model, (this.tokens.get(grader.model) ?? 0) + tokens);
        return score;
      }
      case 'python':
        return runtime.python.grade(grader.source, graded, { project, signal });
      case 'webhook':
        return askWebhook(grader, graded, outside, runtime.asking, signal);
    }
  }

  private textsOf({ input, reference }: { input: string; reference: string }) {
    return { input: this.rendering.render(input), reference: this.rendering.render(reference) };
  }
}
