/** Graders of the project of a request. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Grade, type Grader, ZerofleetError } from '../../contracts/index.js';
import {
  type GradedItem,
  GraderFault,
  type GraderOutside,
  type Graders,
  type ModelAnswer,
  type ModelQuestion,
} from '../../graders/grader.js';
import { gradersOf } from '../../graders/graders.js';
import { askServer } from '../../graders/model-servers.js';
import { enabledTarget } from '../../state/index.js';
import { found } from '../access/found.js';
import { wholeAnswer } from '../answers/service.js';
import { type AnsweringModel, checkpointModel, uploadedModel } from '../answers/sources.js';
import { whileSilent } from '../http/long-request.js';
import { invalidDocument } from '../jobs/check-spec.js';

interface Exchange {
  request: FastifyRequest;
  reply: FastifyReply;
}

/** Grades an answer while the client waits. @throws ZerofleetError `validation_failed`, `rate_limited` */
export function gradeAnswer(exchange: Exchange, grader: Grader, graded: GradedItem): Promise<Grade> {
  return withGraders(exchange, async (graders, signal) => {
    await requireValid(graders, grader, signal);
    return graders.grade(grader, graded, signal);
  });
}

/** Checks a grader. @throws ZerofleetError `validation_failed`, `rate_limited` */
export function checkGrader(exchange: Exchange, grader: Grader): Promise<void> {
  return withGraders(exchange, (graders, signal) => requireValid(graders, grader, signal));
}

async function withGraders<T>(
  exchange: Exchange,
  task: (graders: Omit<Graders, 'close'>, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { request, reply } = exchange;
  const { services } = request.server;
  const { project } = request.records;
  const end = services.grades.begin(project);
  try {
    const outside = outsideOf(exchange);
    const graders = gradersOf({ runtime: services.graders, project, outside });
    return await whileSilent(request, reply, (signal) => task(graders, signal));
  } finally {
    end();
  }
}

async function requireValid(
  graders: Omit<Graders, 'close'>,
  grader: Grader,
  signal: AbortSignal,
): Promise<void> {
  const errors = await graders.problems(grader, signal);
  if (errors.length > 0)
    throw invalidDocument(errors.map((error) => ({ ...error, pointer: `/grader${error.pointer}` })));
}

function outsideOf({ request, reply }: Exchange): GraderOutside {
  const { store, graders, graderServers: servers } = request.server.services;
  const { project } = request.records;
  return {
    findWebhook: (id) => enabledTarget(store, project, id),
    askModel: (question, signal) =>
      question.server === null
        ? askOwnModel({ request, reply }, question)
        : askServer(question.server, question, { ...graders.asking, servers, project }, signal),
  };
}

/** Asks a checkpoint or an uploaded model. @throws GraderFault `model_unavailable` */
async function askOwnModel(exchange: Exchange, question: ModelQuestion): Promise<ModelAnswer> {
  const { messages, max_tokens, temperature, top_p, seed, schema } = question;
  const responseFormat = { type: 'json_schema' as const, json_schema: { name: 'score', schema } };
  const body = { messages, max_tokens, temperature, top_p, seed, response_format: responseFormat };
  try {
    const model = await findModel(exchange.request, question.model);
    const { choices, usage } = await wholeAnswer(exchange, model, body);
    const tokens = usage.prompt_tokens + usage.completion_tokens;
    return { text: choices[0]?.text ?? '', refusal: null, tokens };
  } catch (error) {
    if (!(error instanceof ZerofleetError) || error.code === 'shutting_down') throw error;
    throw new GraderFault('model_unavailable', `the model ${question.model}: ${error.message}`);
  }
}

async function findModel(request: FastifyRequest, id: string): Promise<AnsweringModel> {
  if (id.startsWith('ckpt_')) return checkpointModel(request, id);
  return uploadedModel(found(await request.records.getModel(id), 'model', id));
}
