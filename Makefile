# drover. Run "make help".

export CGO_ENABLED ?= 0
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath # all clones share what Go has built
GO       ?= go
BIN      := bin
LDFLAGS  := -s -w
FUZZTIME ?= 60s
IMAGES   ?= /var/lib/drover/images
DEBIAN   ?= 12
IMAGE    ?= debian-$(DEBIAN)
SOURCE   ?= oci:$$($(GO) run ./e2e/buildcache/build image$(DEBIAN:12=))
E2E_ALL  ?= 1
OUTAGE   ?= 5m
DIST     ?= dist

# Packages whose tests run without the race detector in "make test", with it in "make race": programs that others start, and
# clusters, which take minutes of processor time as it is.
NORACE := ^drover/(cmd/drover$$|deploy|nodeimage|e2e)

# Pinned tools. Go builds them into its cache on first use.
GOLANGCI    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0
NFPM        := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## bin/drover and bin/drover-init, static
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/...

.PHONY: install
install: ## the programs to /usr/bin and /usr/lib/drover, for "drover serve" (root)
	install -D -m 755 $(BIN)/drover $(DESTDIR)/usr/bin/drover
	install -D -m 755 $(BIN)/drover-init $(DESTDIR)/usr/lib/drover/drover-init

.PHONY: demo
demo: need-demo ## a virtual rack netboots into three real clusters (root; KEEP=1 leaves it running)
	$(GO) run ./e2e/demo $(if $(KEEP),-keep)

.PHONY: demo-farm
demo-farm: need-demo ## an empty admin cluster: helm install, kubectl apply, three machines Ready in hosted tenants (root; KEEP=1)
	$(GO) run ./e2e/demo/farm $(if $(KEEP),-keep)

.PHONY: test
test: need parts ## everything: unit, golden, race, real DHCP clients, a real netboot to Ready (root)
	@export DROVER_E2E=1; failed=0; set -x; $(MAKE) unit-race || failed=1; \
	$(MAKE) -k -j2 unit-plain e2e E2E_ALL= || failed=1; exit $$failed # beside each other: tests that wait for a machine leave a processor idle

.PHONY: parts
parts: need ## build the parts of the rack: Kubernetes, containerd, flannel, the node image (once, then cached)
	$(GO) run ./e2e/buildcache/build kubernetes debian12 debian13 checkers arm64 helm dex image image13 network hosted preloaded

.PHONY: unit
unit: unit-race unit-plain ## the tests of all packages, of most with the race detector

.PHONY: unit-race unit-plain
unit-race:
	CGO_ENABLED=1 $(GO) test -race -timeout 90m $$($(GO) list ./... | grep -vE '$(NORACE)')
unit-plain:
	$(GO) test -timeout 90m -p 2 $$($(GO) list ./... | grep -v '^drover/e2e$$' | grep -E '$(NORACE)')

.PHONY: race
race: ## the tests of all packages with the race detector (an hour)
	CGO_ENABLED=1 $(GO) test -race -timeout 120m $$($(GO) list ./... | grep -v '^drover/e2e$$')

.PHONY: soak
soak: need parts ## what CI has no time for: each test of the lab with whole systems, the attacks, all with the race detector (root; hours)
	DROVER_E2E=1 $(MAKE) race e2e attack E2E_ALL=1

.PHONY: e2e
e2e: need ## the lab only: real firmware, real clusters (root; E2E_ALL= as in CI: tiny systems where a Debian takes minutes)
	DROVER_E2E=1 DROVER_E2E_ALL=$(E2E_ALL) $(GO) test -v -count=1 -timeout 120m -parallel 2 ./e2e

.PHONY: bench
bench: ## benchmarks of the hot paths
	$(GO) test -run '^$$' -bench . -benchmem ./pools/... ./dhcp/... ./tftp/... ./httpboot/...

.PHONY: bench-dhcp
bench-dhcp: ## DHCP against Kea and dnsmasq, with ratios (root; BENCH=-quick, see docs/benchmarks.md)
	$(GO) run ./e2e/bench/dhcp $(BENCH)

.PHONY: bench-tftp
bench-tftp: ## TFTP against tftpd-hpa, atftpd and dnsmasq, with ratios (root; four minutes; see docs/tftp.md)
	$(GO) run ./e2e/bench/tftp $(BENCH)

.PHONY: bench-boot
bench-boot: need ## HTTP, TFTP, initrd and whole boots against nginx, tftpd-hpa, mkinitramfs, live-boot … (root; BENCH=-quick)
	$(GO) run ./e2e/bench/boot $(BENCH)

.PHONY: bench-hosted
bench-hosted: need ## eight hosted tenants, beside separate pods: time until nodes join, memory (root; BENCH=-tenants=2)
	$(GO) run ./e2e/bench/hosted $(BENCH)

.PHONY: bench-image
bench-image: need ## building an image against mksquashfs, with sizes and limits (root; two minutes)
	$(GO) run ./e2e/bench/image $(BENCH)

.PHONY: swarm
swarm: ## N (100) machines without systems boot at once in RACKS (1), with LOSS percent, DELAY, SLOW and MAD ones (root; SWARM=-help)
	$(GO) run ./e2e/bench/swarm -n $(or $(N),100) -racks $(or $(RACKS),1) $(if $(LOSS),-loss $(LOSS)) $(if $(DELAY),-delay $(DELAY)) $(if $(SLOW),-slow $(SLOW)) $(if $(MAD),-mad $(MAD)) $(SWARM)

.PHONY: outage
outage: need ## the admin cluster's API server is down for OUTAGE (5m): boots, leases and tenants go on (root)
	DROVER_E2E=1 $(GO) test -v -count=1 -timeout 60m -run '^TestAdminDown$$' ./e2e/hosted -outage $(OUTAGE)

.PHONY: attack
attack: need ## attack a running server, and print how much later a machine boots (root; ATTACK="-drover FILE" for another program)
	DROVER_E2E=1 $(GO) test -v -count=1 -timeout 120m ./e2e/attack -args -long $(ATTACK)
	DROVER_ATTACK=1 DROVER_E2E=1 $(GO) test -v -count=1 -timeout 120m -run 'TestKill|TestAnyDamage' ./state ./cmd/drover
	DROVER_E2E=1 DROVER_E2E_ALL=1 $(GO) test -v -count=1 -timeout 60m -run TestReadyUnderAttack ./e2e

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (60s), then a million mutated packets to a running server (root)
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
	  done; \
	done
	DROVER_E2E=1 $(GO) test -v -count=1 -timeout 60m -run TestWireFuzz ./e2e/attack -args -long

.PHONY: golden
golden: ## rewrite the golden files; read the diff before you commit it
	$(GO) test $$(grep -rlE --include='*_test.go' 'fixture\.(Golden|Update)\(' . | xargs -n1 dirname | sort -u) -update

.PHONY: lint
lint: ## gofmt, golangci-lint, which has go vet in it
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) run $(GOLANGCI) run

.PHONY: vuln
vuln: ## known vulnerabilities in called functions (VULNDB=DIR: in a copy of the Go vulnerability database, without the internet)
	$(GO) run $(GOVULNCHECK) $(if $(VULNDB),-db file://$(abspath $(VULNDB))) ./...

.PHONY: quick
quick: ## the unit tests that need no root, without the race detector
	$(GO) test -short $$($(GO) list ./... | grep -vE '^drover/(deploy/package|e2e)')

.PHONY: check
check: lint quick ## the linters and the unit tests that need no root (minutes), before each commit

.PHONY: image
image: build ## build Dockerfile.image into IMAGES, where drover serve reads it (root; DEBIAN=13 for that one; see docs/images.md)
	@.ci/need image
	$(BIN)/drover image build --images $(IMAGES) --name $(IMAGE) --init $(BIN)/drover-init $(SOURCE)

.PHONY: server-image
server-image: ## dist/drover-image.tar: the server's container image for amd64 and arm64 (WITH="-loaders DIR -images DIR": with those in it; DIST)
	for a in amd64 arm64; do GOARCH=$$a $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/$$a/drover ./cmd/drover || exit 1; done
	$(GO) run ./deploy/sbom -notices $(BIN)/amd64/drover >$(BIN)/third-party-notices
	$(GO) run ./deploy/serverimage/build -o $(DIST)/drover-image.tar -notices $(BIN)/third-party-notices $(WITH) amd64=$(BIN)/amd64/drover arm64=$(BIN)/arm64/drover

.PHONY: deb
deb: ## dist/: the Debian package for this host (ARCHES="amd64 arm64" for both architectures; DIST for another folder)
	DIST='$(DIST)' deploy/package/build '$(LDFLAGS)' $(NFPM)

.PHONY: dist
dist: ## dist/: Debian packages and tarballs for amd64 and arm64, the server's image, the chart, SBOM, checksums (DIST for another folder)
	DIST='$(DIST)' WITH='$(WITH)' deploy/package/build '$(LDFLAGS)' $(NFPM) all
	umask 022 && cd '$(DIST)' && sha256sum *.deb *.tar.gz *.tgz *.tar *.json >SHA256SUMS && cat SHA256SUMS

.PHONY: clean
clean: ## remove the files built in this folder; the cache outside stays
	rm -rf $(BIN) dist

NEED = command -v $(GO) >/dev/null || { echo 'Go 1.26 or newer is needed: see https://go.dev/dl' >&2; exit 1; }; .ci/need

.PHONY: need need-demo
need:
	@$(NEED)
need-demo:
	@$(NEED) demo
