import type { Grader } from '../../../contracts/index.js';
import type { Graders } from '../../../graders/grader.js';
import { invalidDocument } from '../../jobs/check-spec.js';
import type { OperationHandler } from '../types.js';

export const runGrader: OperationHandler<'runGrader'> = async (request) => {
  const { grader, output_text, item = {} } = request.body;
  const { graders } = request.server.services;
  await requireValid(graders, grader as Grader);
  return graders.grade(grader as Grader, { item, sample: { output_text } });
};

export const validateGrader: OperationHandler<'validateGrader'> = async (request) => {
  const { grader } = request.body;
  await requireValid(request.server.services.graders, grader as Grader);
  return { grader };
};

/** @throws ZerofleetError `validation_failed` */
async function requireValid(graders: Graders, grader: Grader): Promise<void> {
  const errors = await graders.problems(grader);
  if (errors.length > 0)
    throw invalidDocument(errors.map((error) => ({ ...error, pointer: `/grader${error.pointer}` })));
}
