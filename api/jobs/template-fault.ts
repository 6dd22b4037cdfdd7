import type { FastifyRequest } from 'fastify';
import { ZerofleetError } from '../../contracts/index.js';
import type { SpecLookups } from './check-spec.js';

/** Parses chat templates in a thread: parsing time may grow quadratically with their length. */
export function templateFault({
  records,
  server,
}: Pick<FastifyRequest, 'records' | 'server'>): SpecLookups['template'] {
  const { inspector } = server.services;
  return async (source) => {
    try {
      await inspector.run('checkTemplate', { source }, { owner: records.project });
      return null;
    } catch (error) {
      const isFault =
        error instanceof ZerofleetError &&
        ['chat_template_invalid', 'content_too_complex'].includes(error.code);
      if (isFault) return error.message;
      throw error;
    }
  };
}
