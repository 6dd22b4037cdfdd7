import type { Grader } from '../../../contracts/index.js';
import { checkGrader, gradeAnswer } from '../../graders/grade.js';
import type { OperationHandler } from '../types.js';

export const runGrader: OperationHandler<'runGrader'> = (request, reply) => {
  const { grader, output_text, item = {} } = request.body;
  return gradeAnswer({ request, reply }, grader as Grader, { item, sample: { output_text } });
};

export const validateGrader: OperationHandler<'validateGrader'> = async (request, reply) => {
  const { grader } = request.body;
  await checkGrader({ request, reply }, grader as Grader);
  return { grader };
};
