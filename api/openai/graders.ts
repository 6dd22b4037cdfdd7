/** `/fine_tuning/alpha/graders`: graders before a job uses them. */
import type { FastifyInstance } from 'fastify';
import type { GraderRunResponse } from 'openai/resources/fine-tuning/alpha/graders';
import type { Grade, GradeError, Grader } from '../../contracts/index.js';
import { Type } from '../../platform/schema.js';
import { checkGrader, gradeAnswer } from '../graders/grade.js';
import { invalidDocument } from '../jobs/check-spec.js';
import type { Contract } from '../operations.js';
import { parserOf } from './pages.js';
import { routeAs } from './route-as.js';

const grader = Type.Unsafe<Grader>({ type: 'object' });
const strict = { additionalProperties: false };
const parseRun = parserOf(
  Type.Object(
    {
      grader,
      model_sample: Type.String(),
      item: Type.Optional(Type.Unsafe<Record<string, unknown>>({ type: 'object' })),
    },
    strict,
  ),
);
const parseValidate = parserOf(Type.Object({ grader }, strict));

type Errors = GraderRunResponse.Metadata['errors'];
type Flag = {
  [K in keyof Errors]: Errors[K] extends boolean ? K : never;
}[keyof Errors];

const FLAGS: Readonly<Record<GradeError['code'], Flag>> = {
  template_variable_missing: 'invalid_variable_error',
  template_text_too_long: 'truncated_observation_error',
  sample_not_json: 'sample_parse_error',
  formula_not_finite: 'formula_parse_error',
  texts_too_complex: 'other_error',
  model_unavailable: 'model_grader_server_error',
  model_refused: 'model_grader_refusal_error',
  model_answer_invalid: 'model_grader_parse_error',
  python_unavailable: 'python_grader_server_error',
  python_source_invalid: 'python_grader_runtime_error',
  python_failed: 'python_grader_runtime_error',
  python_forbidden: 'python_grader_runtime_error',
  python_result_invalid: 'python_grader_runtime_error',
  python_time_limit: 'python_grader_runtime_error',
  python_memory_limit: 'python_grader_runtime_error',
  python_output_limit: 'python_grader_runtime_error',
  python_died: 'python_grader_runtime_error',
  webhook_unavailable: 'unresponsive_reward_error',
  webhook_refused: 'other_error',
  webhook_answer_invalid: 'other_error',
};

export async function graderRoutes(app: FastifyInstance): Promise<void> {
  const { contract } = app.services;

  app.post('/fine_tuning/alpha/graders/run', routeAs(app, 'runGrader'), async (request, reply) => {
    const { grader, model_sample, item = {} } = parseRun(request.body);
    requireSchema(contract, grader);
    const graded = { item, sample: { output_text: model_sample } };
    return runResponse(grader, await gradeAnswer({ request, reply }, grader, graded));
  });

  app.post('/fine_tuning/alpha/graders/validate', routeAs(app, 'validateGrader'), async (request, reply) => {
    const { grader } = parseValidate(request.body);
    requireSchema(contract, grader);
    await checkGrader({ request, reply }, grader);
    return { grader };
  });
}

/** @throws ZerofleetError `validation_failed` */
function requireSchema(contract: Contract, grader: Grader): void {
  const errors = contract.graderErrors(grader);
  if (errors.length > 0)
    throw invalidDocument(errors.map((error) => ({ ...error, pointer: `/grader${error.pointer}` })));
}

function runResponse(grader: Grader, { reward, scores, errors, seconds, tokens }: Grade): GraderRunResponse {
  const models = Object.keys(tokens);
  return {
    reward,
    sub_rewards: grader.type === 'multi' ? scores : {},
    metadata: {
      name: grader.name,
      type: grader.type,
      scores,
      errors: errorsOf(errors),
      execution_time: seconds,
      sampled_model_name: models[0] ?? null,
      token_usage: models.length === 0 ? null : Object.values(tokens).reduce((sum, count) => sum + count),
    },
    model_grader_token_usage_per_model: tokens,
  };
}

function errorsOf(errors: readonly GradeError[]): Errors {
  const messageOf = (flag: Flag) => errors.find(({ code }) => FLAGS[code] === flag)?.message ?? null;
  const flags = Object.fromEntries(Object.values(FLAGS).map((flag) => [flag, messageOf(flag) !== null]));
  return {
    ...(flags as Record<Flag, boolean>),
    model_grader_server_error_details: messageOf('model_grader_server_error'),
    python_grader_runtime_error_details: messageOf('python_grader_runtime_error'),
    python_grader_server_error_type: messageOf('python_grader_server_error'),
  };
}
