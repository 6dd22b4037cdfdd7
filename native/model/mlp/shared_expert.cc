#include "model/mlp/shared_expert.h"

#include "kernels/elementwise/dropout.h"
#include "kernels/elementwise/row_gate.h"

namespace zerofleet {

SharedExpert::SharedExpert(const ModelContext& model, const MlpSpec& spec)
    : mlp_(make_dense_mlp(model, spec.shared, model.config.shared_expert_size)),
      gate_(model, spec.shared_router, model.config.hidden_size) {}

SharedExpert::Kept::Kept(const ModelContext& model, const PassShape& shape, const SharedExpert& expert)
    : mlp(expert.mlp_->make_kept(model, shape)),
      out(model.tensor(shape.rows(), model.config.hidden_size)),
      logit(model.tensor(shape.rows(), 1)),
      low(expert.gate_.adapter().make_low(model, shape.rows())) {}

// M·(row(D) + row(1)), with an adapter M·row(low_size()), and what the MLP keeps
std::size_t SharedExpert::Kept::num_bytes() const { return bytes_of(*mlp, out, logit, low); }

SharedExpert::Work::Work(const ModelContext& model, const PassShape& shape, const SharedExpert& expert,
                         const std::shared_ptr<PackedMatrix>& spare)
    : mlp(expert.mlp_->make_work(model, shape, spare)),
      dlogit(model.tensor(shape.rows(), 1)),
      gate(model, expert.gate_, shape.rows(), spare) {}

// M·row(1), the gradients of the gate, and what the MLP works in
std::size_t SharedExpert::Work::num_bytes() const { return bytes_of(*mlp, dlogit, gate); }

void SharedExpert::request_forward(const ModelContext& model, ParamPointers params,
                                   std::vector<PackRequest>& requests) {
  mlp_->request_forward(model, params, requests);
  gate_.request_forward(model, params, requests);
}

void SharedExpert::request_backward(const ModelContext& model, ParamPointers params,
                                    std::vector<PackRequest>& requests) {
  mlp_->request_backward(model, params, requests);
  gate_.request_backward(model, params, requests);
}

void SharedExpert::forward(const ModelContext& model, const Pass& pass, const Matrix& x, Kept& kept) const {
  gate_.forward(model, pass, x, kept.logit.first_rows(x.rows), kept.low);
  mlp_->activate(model, pass, x, *kept.mlp);
  mlp_->project(model, pass, x, *kept.mlp, kept.out.first_rows(x.rows));
}

void SharedExpert::add_to(const ModelContext& model, const Kept& kept, const Matrix& y) {
  add_gated(model.ctx, kept.logit.first_rows(y.rows), kept.out.first_rows(y.rows), y);
}

void SharedExpert::backward(const ModelContext& model, const Pass& pass, const Mlp::Backward& args, Kept& kept,
                            Work& work, const Matrix& room, GradSink& sink) const {
  const std::int64_t rows = args.x.rows;
  const Matrix dlogit = work.dlogit.first_rows(rows);
  const Matrix dout{room.data, room.dtype, rows, room.cols, room.stride};
  const Matrix dx{room.at(rows, 0), room.dtype, rows, room.cols, room.stride};
  add_gated_backward(model.ctx, {kept.logit.first_rows(rows), kept.out.first_rows(rows), args.dy, dout, dlogit});
  gate_.backward(model, pass, {args.x, dlogit, dx}, kept.low, work.gate, sink);
  add(model.ctx, dx, args.dx);
  mlp_->backward(model, pass, {args.x, dout, dx}, *kept.mlp, *work.mlp, sink);
  add(model.ctx, dx, args.dx);
}

}  // namespace zerofleet
