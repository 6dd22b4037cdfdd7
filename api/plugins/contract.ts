import compress from '@fastify/compress';
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RouteHandlerMethod,
  RouteOptions,
} from 'fastify';
import openapiGlue from 'fastify-openapi-glue';
import fp from 'fastify-plugin';
import { type OperationId, ZerofleetError } from '../../contracts/index.js';
import { handlers } from '../handlers/index.js';
import { holdRawBody } from '../http/long-request.js';
import { hasBody, mediaTypeOf } from '../http/upload-body.js';
import { type HttpPart, RequestValidators } from '../http/validators.js';
import type { Contract, Operation } from '../operations.js';

/**
 * Binds every operation of `openapi.yaml` to the handler of the same name, with checks in this order: key and scopes
 * (`protection`), media type, body, schema, handler. A request is refused before its body is read if possible.
 */
export default fp(
  async (app: FastifyInstance) => {
    const { prefix, routes, validators } = await routesOf(app.services.contract);
    app.setValidatorCompiler(({ schema, httpPart }) =>
      validators.compile(schema as object, httpPart as HttpPart),
    );
    // Replies are written by one serializer and tests check them against the contract: a serializer generated from the
    // schema would silently drop fields that the contract lacks.
    app.setSerializerCompiler(() => (data) => JSON.stringify(data));
    await app.register(
      async (scope: FastifyInstance) => {
        await scope.register(compress, { global: false });
        const { call_bytes: bodyLimit } = app.services.limits;
        for (const route of routes)
          scope.route({ ...route, ...(route.config?.operation?.isRaw && { bodyLimit }) });
      },
      { prefix },
    );
  },
  { name: 'contract', dependencies: ['services', 'errors', 'protection', 'bodies'] },
);

/** A page of runs has some 100 kB of JSON, a twelfth of it compressed. Smaller answers gain less than they cost. */
const COMPRESSION: RouteOptions['compress'] = {
  threshold: 8_192,
  encodings: ['gzip'],
  zlibOptions: { level: 1 },
};

interface ContractRoutes {
  prefix: string;
  routes: RouteOptions[];
  validators: RequestValidators;
}

/** Routes by contract: reading them and compiling their schemas takes most of the start of an app. */
const known = new WeakMap<Contract, Promise<ContractRoutes>>();

function routesOf(contract: Contract): Promise<ContractRoutes> {
  const found = known.get(contract) ?? readRoutes(contract);
  known.set(contract, found);
  return found;
}

/** Reads the routes with the OpenAPI glue, which registers them with the app that it is given. */
async function readRoutes(contract: Contract): Promise<ContractRoutes> {
  const routes: RouteOptions[] = [];
  let prefix = '';
  const reader = {
    hasContentTypeParser: () => true,
    route: (route: RouteOptions) => routes.push(route),
    register: async (plugin: (app: unknown) => Promise<void>, options: { prefix?: string }) => {
      prefix = options.prefix ?? '';
      await plugin(reader);
    },
  };
  await openapiGlue(reader as unknown as FastifyInstance, {
    specification: withoutUnchecked(contract.document),
    operationResolver: (operationId) => routeOptions(contract, operationId as OperationId),
  });
  return { prefix, routes, validators: new RequestValidators() };
}

/**
 * The contract without its replies and the schemas of raw bodies. The OpenAPI glue would treat a reply's media types as
 * bodies that the server must parse, and warn about each.
 */
function withoutUnchecked(document: Contract['document']): Contract['document'] {
  const copy = structuredClone(document);
  for (const part of Object.values(copy.paths).flatMap((path) => Object.values(path))) {
    const isOperation = typeof part === 'object' && part !== null && 'responses' in part;
    if (!isOperation) continue;
    part.responses = { default: { description: 'see openapi.yaml' } };
    if ('x-raw-body' in part) Object.assign(part, { requestBody: { content: { 'application/json': {} } } });
  }
  return copy;
}

function routeOptions({ operations }: Contract, operationId: OperationId): RouteOptions {
  const operation = operations.get(operationId);
  const handler = handlers[operationId];
  if (operation === undefined || handler === undefined)
    throw new Error(`no handler for operation ${operationId}`);
  const options: Partial<RouteOptions> = {
    // The request has the handler's types after the operation's schemas have accepted it.
    handler: handler as RouteHandlerMethod,
    config: { operation },
    compress: operation.isJson && COMPRESSION,
    onRequest: async (request, reply) => {
      if (operation.scopes !== null) refuseEscapes(request);
      refuseEncoding(request, reply);
      refuseMediaType(operation, request);
      if (operation.isRaw) holdRawBody(request, reply);
    },
    ...(operation.mediaTypes.length > 0 && {
      preValidation: async (request: FastifyRequest) => requireBody(operation, request),
    }),
    // These handlers report schema errors together with errors of rules between fields.
    attachValidation: ['createJob', 'estimateMemory', 'createSweep'].includes(operationId),
  };
  // The OpenAPI glue adds method, url and schema.
  return options as RouteOptions;
}

/**
 * Refuses malformed escapes in the query, which would otherwise be taken literally. The router refuses those of paths.
 */
function refuseEscapes({ raw }: FastifyRequest): void {
  const [, query = ''] = raw.url?.split('?', 2) ?? [];
  try {
    decodeURIComponent(query);
  } catch {
    throw new ZerofleetError('invalid_parameter', 'the query has an escape (%…) that is not UTF-8');
  }
}

function refuseEncoding(request: FastifyRequest, reply: FastifyReply): void {
  const encoding = request.headers['content-encoding']?.trim().toLowerCase() ?? '';
  if (!hasBody(request) || encoding === '' || encoding === 'identity') return;
  reply.header('accept-encoding', 'identity');
  throw new ZerofleetError(
    'unsupported_media_type',
    `a body with the Content-Encoding ${encoding.slice(0, 100)} is not supported; send it uncompressed`,
  );
}

function refuseMediaType({ mediaTypes, operationId }: Operation, request: FastifyRequest): void {
  if (!hasBody(request) || mediaTypes.length === 0) return;
  const mediaType = mediaTypeOf(request);
  if (mediaTypes.includes(mediaType)) return;
  throw new ZerofleetError(
    'unsupported_media_type',
    `${operationId} reads ${mediaTypes.join(' or ')}, not ${mediaType === '' ? 'a body without a content type' : mediaType}`,
  );
}

function requireBody({ mediaTypes, bodyRequired }: Operation, request: FastifyRequest): void {
  // A media type without a body may have been parsed to a value that the operation does not expect.
  const isForeign = !hasBody(request) && !mediaTypes.includes(mediaTypeOf(request));
  if (request.body !== undefined && !isForeign) return;
  if (bodyRequired)
    throw new ZerofleetError('body_required', `the request needs a body of ${mediaTypes.join(' or ')}`);
  request.body = {};
}
